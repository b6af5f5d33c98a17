"""Three tokens, one head, with PyTorch."""

import sys

import torch
import yaml

with open(sys.argv[1], encoding="utf-8") as file:
    problem = yaml.safe_load(file)
Z, W_Q, W_K, W_V = (torch.tensor(problem[key], dtype=torch.float64) for key in ("Z", "W_Q", "W_K", "W_V"))
Q, K, V = Z @ W_Q, Z @ W_K, Z @ W_V
scores = Q @ K.T
weights = torch.softmax(scores / K.shape[1] ** 0.5, dim=-1)
for matrix in (Q, K, V, scores, weights, weights @ V):
    print(matrix)
