"""Multi-head attention from .npy files with PyTorch's own function; prints the seconds of the attention itself."""

import sys
import time
from pathlib import Path

import numpy as np
import torch

folder, heads = Path(sys.argv[1]), 8
torch.set_num_threads(2)
Z, W_Q, W_K, W_V, W_O = (torch.from_numpy(np.load(folder / f"{key}.npy")) for key in ("Z", "W_Q", "W_K", "W_V", "W_O"))
n = Z.shape[0]
with torch.inference_mode():
    Q, K, V = ((Z @ W).view(1, n, heads, -1).transpose(1, 2) for W in (W_Q, W_K, W_V))
    start = time.perf_counter()
    heads_out = torch.nn.functional.scaled_dot_product_attention(Q, K, V)
    seconds = [time.perf_counter() - start]
    for _ in range(int(sys.argv[2]) if len(sys.argv) > 2 else 0):
        start = time.perf_counter()
        torch.nn.functional.scaled_dot_product_attention(Q, K, V)
        seconds.append(time.perf_counter() - start)
    np.save(folder / "torch.npy", (heads_out.transpose(1, 2).reshape(n, -1) @ W_O).numpy())
print(sorted(seconds)[len(seconds) // 2])
