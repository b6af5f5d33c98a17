"""Three tokens, one head, as seven rich tables: written by hand, without Typer."""

import sys

import numpy as np
import yaml
from rich.console import Console
from rich.table import Table

with open(sys.argv[1], encoding="utf-8") as file:
    problem = yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
Z, W_Q, W_K, W_V = (np.array(problem[key], float) for key in ("Z", "W_Q", "W_K", "W_V"))
Q, K, V = Z @ W_Q, Z @ W_K, Z @ W_V
scores = Q @ K.T
scaled_scores = scores / np.sqrt(K.shape[1])
powers = np.exp(scaled_scores - scaled_scores.max(axis=1, keepdims=True))
weights = powers / powers.sum(axis=1, keepdims=True)
outputs = weights @ V
console = Console()
stages = {"Q": Q, "K": K, "V": V, "scores": scores, "scaled_scores": scaled_scores, "weights": weights}
for name, matrix in {**stages, "outputs": outputs}.items():
    table = Table(title=f"{name} ({matrix.shape[0]} × {matrix.shape[1]})")
    table.add_column("")
    for column in range(matrix.shape[1]):
        table.add_column(str(column + 1), justify="right")
    for label, row in zip(problem["tokens"], matrix, strict=True):
        table.add_row(str(label), *(f"{x:.0f}" if x == int(x) else f"{x:.4f}" for x in row))
    console.print(table)
