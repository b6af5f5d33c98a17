"""Every stage of eight heads with numpy expressions, saved as .npz."""

import sys
from pathlib import Path

import numpy as np

folder, heads = Path(sys.argv[1]), 8
Z, W_Q, W_K, W_V, W_O = (np.load(folder / f"{key}.npy").astype(float) for key in ("Z", "W_Q", "W_K", "W_V", "W_O"))
n = Z.shape[0]
Q, K, V = ((Z @ W).reshape(n, heads, -1).swapaxes(0, 1) for W in (W_Q, W_K, W_V))
scores = Q @ K.swapaxes(1, 2)
scaled_scores = scores / np.sqrt(K.shape[-1])
weights = np.exp(scaled_scores - scaled_scores.max(axis=-1, keepdims=True))
weights /= weights.sum(axis=-1, keepdims=True)
outputs = weights @ V
concat = outputs.swapaxes(0, 1).reshape(n, -1)
np.savez(
    sys.argv[2], Q=Q, K=K, V=V, scores=scores, scaled_scores=scaled_scores, weights=weights,
    outputs=outputs, concat=concat, multihead=concat @ W_O,
)  # fmt: skip
