"""LayerInputs: what the formulas of a layer read. Arrays in the row convention, sizes, settings; no keys, no texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from attncli.maths.mask import Mask
    from attncli.maths.ops import Array


class Held:
    """The array of the key that an attribute is called after, or None where it isn't given."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, inputs: LayerInputs, owner: type | None = None) -> Array | None:
        return inputs.arrays.get(self.name)


@dataclass(kw_only=True, eq=False)
class LayerInputs:
    """The inputs of one layer's stages.

    ``arrays``: by key, in rows, heads fused (W_Q is (d_model, h·d_k)); ``given``: the stages that are given in place
    of being computed, and ``parts``: past_K, past_V, extra_K, extra_V, both (batch.., head, row, column).

    Sizes: ``n`` queries, ``m`` keys (``past`` cached and ``extra`` ones included), ``d_model``, ``d_memory``,
    ``d_k``, ``d_v``, ``d_out`` (None where unknown), ``batch`` (leading axes); ``sizes`` has all further ones.
    """

    arrays: Mapping[str, Array]
    given: Mapping[str, Array] = field(default_factory=dict)
    parts: Mapping[str, Array] = field(default_factory=dict)
    n: int
    m: int
    d_model: int | None = None
    d_memory: int | None = None
    d_k: int | None = None
    d_v: int | None = None
    d_out: int | None = None
    num_heads: int = 1
    num_kv_heads: int = 1
    past: int = 0
    extra: int = 0
    batch: tuple[int, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    columns: bool = False
    """Whether a token is a column: ``layout: columns``."""
    score: str = "scaled_dot"
    scale: float | None = None
    softcap: float | None = None
    mask: Mask | None = None
    mask_spec: Any = None
    """What the mask was asked for as, for whoever asks for another one."""
    mask_fill: float | None = None
    empty_rows: str = "zero"
    dtype: np.dtype[Any]
    exact: bool = False
    round: int | dict[str, int] | None = None
    """Decimals of every stage, or of those named."""
    rounding: str = "half_away"

    Z = Held()
    memory = Held()
    memory_V = Held()
    W_Q = Held()
    W_K = Held()
    W_V = Held()
    W_O = Held()
    b_Q = Held()
    b_K = Held()
    b_V = Held()
    b_O = Held()
    W_a = Held()
    W_1 = Held()
    W_2 = Held()
    v = Held()
    b = Held()
    Q = Held()
    K = Held()
    V = Held()

    @property
    def is_scaled(self) -> bool:
        """Whether the scores are scaled: score is scaled_dot, or a scale is given."""
        return self.score == "scaled_dot" or self.scale is not None

    @property
    def is_cross(self) -> bool:
        """Whether keys and values come from elsewhere than the queries."""
        return self.memory is not None or (self.Z is None and (self.Q is not None or self.K is not None))

    def decimals(self, stage: str) -> int | None:
        """To how many decimals a stage is rounded before the next one uses it; None where it isn't."""
        return self.round.get(stage) if isinstance(self.round, dict) else self.round

    def size(self, axis: str) -> int:
        """How long an axis of a stage is: h, n, d_k, h·d_v; 0 where it is unknown.

        >>> import numpy as np
        >>> LayerInputs(arrays={}, n=3, m=4, d_v=2, num_heads=5, dtype=np.dtype(float)).size("h·d_v")
        10
        """
        if "·" in axis:
            first, second = axis.split("·")
            return self.size(first) * self.size(second)
        if axis == "d_q":
            return self._width_of_queries()
        own = {
            "h": self.num_heads, "g": self.num_kv_heads, "n": self.n, "m": self.m, "d_model": self.d_model,
            "d_k": self.d_k, "d_v": self.d_v, "d_out": self.d_out,
        }  # fmt: skip
        return (own[axis] if axis in own else self.sizes.get(axis)) or (int(axis) if axis.isdigit() else 0)

    def _width_of_queries(self) -> int:
        """d_k, but where the score function has matrices between queries and keys, which may differ in width."""
        if self.score not in ("general", "additive"):
            return self.d_k or 0
        return self.W_Q.shape[1] // self.num_heads if self.W_Q is not None else int(self.given["Q"].shape[-1])

    def projected_from(self, role: str) -> str:
        """The key that Q, K or V is projected from."""
        if role == "V" and "memory_V" in self.arrays:
            return "memory_V"
        return "memory" if role != "Q" and "memory" in self.arrays else "Z"

    def projection(self, role: str) -> tuple[str, str, str]:
        """The keys that Q, K or V is made of: what is projected, the weight, the bias."""
        return self.projected_from(role), f"W_{role}", f"b_{role}"
