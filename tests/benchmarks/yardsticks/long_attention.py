"""attncli's attention alone, on the same Q, K and V as long_torch.py: prints its seconds."""

import sys
import time
from pathlib import Path

import numpy as np

from attncli import Problem, compute

folder = Path(sys.argv[1])
Z, W_Q, W_K, W_V = (np.load(folder / f"{key}.npy") for key in ("Z", "W_Q", "W_K", "W_V"))
problem = Problem(Q=Z @ W_Q, K=Z @ W_K, V=Z @ W_V, num_heads=8, dtype="float32")
seconds = []
for _ in range(7):
    start = time.perf_counter()
    compute(problem, ["outputs"])
    seconds.append(time.perf_counter() - start)
print(sorted(seconds)[3])
