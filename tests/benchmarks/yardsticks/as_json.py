"""Three tokens, one head, as JSON: written by hand, without Typer."""

import json
import sys

import numpy as np
import yaml

with open(sys.argv[1], encoding="utf-8") as file:
    problem = yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
Z, W_Q, W_K, W_V = (np.array(problem[key], float) for key in ("Z", "W_Q", "W_K", "W_V"))
Q, K, V = Z @ W_Q, Z @ W_K, Z @ W_V
scores = Q @ K.T
scaled_scores = scores / np.sqrt(K.shape[1])
powers = np.exp(scaled_scores - scaled_scores.max(axis=1, keepdims=True))
weights = powers / powers.sum(axis=1, keepdims=True)
stages = {"Q": Q, "K": K, "V": V, "scores": scores, "scaled_scores": scaled_scores, "weights": weights}
json.dump({name: matrix.tolist() for name, matrix in {**stages, "outputs": weights @ V}.items()}, sys.stdout)
