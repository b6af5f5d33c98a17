"""The parts of a plain Transformer: functions of one number, one row, one pair of positions. Apart from the package."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Keys = Mapping[str, Any]


def known(keys: Keys, names: set[str]) -> None:
    for key in keys:
        if key not in names:
            raise KeyError(f"the plain Transformer doesn't know {key}")


def number(value: Any) -> float:
    """3, "1/3", "sqrt(8)", "1/sqrt(8)", "-inf": the numbers that the cases write."""
    if not isinstance(value, str):
        return float(value)
    over, slash, under = value.partition("/")
    if slash:
        return number(over) / number(under)
    return math.sqrt(number(value[5:-1])) if value.startswith("sqrt(") else float(value)


def activation(name: str, x: float) -> float:
    if name == "relu":
        return max(x, 0.0)
    if name == "relu2":
        return max(x, 0.0) ** 2
    if name == "gelu":
        return x * (1 + math.erf(x / math.sqrt(2))) / 2
    if name == "gelu_tanh":
        return x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2
    if name == "tanh":
        return math.tanh(x)
    if name == "identity":
        return x
    steep = {"silu": 1.0, "sigmoid": 1.0, "quick_gelu": 1.702}[name] * x
    sigmoid = 1 / (1 + math.exp(-steep)) if steep > -700 else 0.0
    return sigmoid if name == "sigmoid" else x * sigmoid


def softmax(row: np.ndarray, sink: float | None = None) -> np.ndarray:
    """A row that hides everything is 0."""
    numbers = [float(x) for x in row] + ([] if sink is None else [float(sink)])
    top = max(numbers)
    if top == -math.inf:
        return np.zeros_like(row)
    powers = [math.exp(x - top) for x in numbers]
    return np.array([power / math.fsum(powers) for power in powers[: len(row)]], row.dtype)


def rows(function: Callable[..., Any], matrix: np.ndarray) -> np.ndarray:
    """A function of a row, of every row of an array of any rank."""
    return np.apply_along_axis(function, -1, matrix)


def normed(kind: str, row: np.ndarray, eps: float) -> dict[str, Any]:
    """The parts of a norm of one row."""
    numbers = [float(x) for x in row]
    if kind == "layer":
        mean = math.fsum(numbers) / len(numbers)
        variance = math.fsum((x - mean) ** 2 for x in numbers) / len(numbers)
        root = math.sqrt(variance + eps)
        return {"mean": [mean], "variance": [variance], "normalized": [over(x - mean, root) for x in numbers]}
    squares = math.fsum(x * x for x in numbers)
    root = math.sqrt((squares / len(numbers) if kind == "rms" else squares) + eps)
    return {"rms": [root], "normalized": [over(x, root) for x in numbers]}


def over(top: float, bottom: float) -> float:
    return top / bottom if bottom else math.nan


def turned(x: np.ndarray, angles: np.ndarray, factor: float, pairs: str) -> np.ndarray:
    """One row with its pairs turned, each as a complex number."""
    made, half = x.copy(), len(angles)
    for a, angle in enumerate(angles):
        one, other = (2 * a, 2 * a + 1) if pairs == "interleaved" else (a, a + half)
        point = complex(x[one], x[other]) * complex(math.cos(angle), math.sin(angle)) * factor
        made[one], made[other] = point.real, point.imag
    return made


def rope_thetas(spec: Keys, d_k: int, length: int) -> tuple[list[float], float]:
    """θ of each pair, and the factor on cos and sin."""
    known(spec, {"base", "pairs", "dim", "fraction", "scaling"})
    dim = int(spec.get("dim", d_k * spec.get("fraction", 1)))
    base, factor, kind, own = float(spec.get("base", 10000)), 1.0, "", {}
    if spec.get("scaling"):
        [(kind, own)] = spec["scaling"].items()
    if kind in ("ntk", "dynamic"):
        stretch = float(own) if kind == "ntk" else own["factor"] * max(length / own["original"], 1) - own["factor"] + 1
        base *= stretch ** (dim / (dim - 2)) if dim > 2 else 1.0
    thetas = [base ** (-2 * a / dim) for a in range(dim // 2)]
    if kind == "linear":
        thetas = [theta / own for theta in thetas]
    if kind == "llama3":
        for a, theta in enumerate(thetas):
            s = (own["original"] * theta / (2 * math.pi) - own["low"]) / (own["high"] - own["low"])
            s = min(max(s, 0.0), 1.0)
            thetas[a] = theta * s + theta * (1 - s) / own["factor"]
    if kind == "yarn":
        ends = [
            dim * math.log(own["original"] / (2 * math.pi * turns)) / (2 * math.log(base))
            for turns in (own.get("beta_fast", 32), own.get("beta_slow", 1))
        ]
        if own.get("truncate", True):
            ends = [math.floor(ends[0]), math.ceil(ends[1])]
        low, high = max(ends[0], 0), min(ends[1], dim - 1)
        for a, theta in enumerate(thetas):
            u = min(max((a - low) / (high - low if high != low else 0.001), 0.0), 1.0)
            thetas[a] = theta * (1 - u) + theta / own["factor"] * u
        factor = own.get("attention_factor", 0.1 * math.log(own["factor"]) + 1 if own["factor"] > 1 else 1.0)
    return thetas, factor


def slope(r: int, h: int) -> float:
    """ALiBi's slope of head r, counted from 1."""
    power = 1
    while 2 * power <= h:
        power *= 2
    return 2.0 ** (-8 * r / power) if r <= power else 2.0 ** (-8 * (2 * (r - power) - 1) / (2 * power))


def bucket(offset: int, spec: Keys) -> int:
    """T5's bucket of key j = i + offset."""
    known(spec, {"table", "buckets", "distance", "bidirectional"})
    count, distance = spec.get("buckets", 32), spec.get("distance", 128)
    first, size = 0, max(-offset, 0)
    if spec.get("bidirectional", True):
        count //= 2
        first, size = (count if offset > 0 else 0), abs(offset)
    half = count // 2
    if size < half:
        return first + size
    steps = math.log(size / half) / math.log(distance / half) * (count - half)
    return first + min(half + math.floor(steps + 1e-12), count - 1)


def allowed(mask: Any, i: int, j: int, r: int, past: int, n: int, m: int) -> bool:
    """Whether query i (the first is 0) may attend to key j in head r."""
    if isinstance(mask, list):
        return all(allowed(one, i, j, r, past, n, m) for one in mask)
    if mask in (None, "none") or "add" in mask:
        return True
    if mask == "causal":
        return j <= i + past
    [(kind, value)] = mask.items()
    if kind == "causal":
        return j <= i + (m - n if value == "bottom-right" else 0)
    if kind == "window":
        left, right = (value, value) if isinstance(value, int) else value
        return (left < 0 or j >= i + past - left) and (right < 0 or j <= i + past + right)
    if kind == "lengths":
        return j < value
    return bool(at(value, r, i, j)) == {"keep": True, "block": False}[kind]


def at(value: Any, r: int, i: int, j: int) -> Any:
    """An entry of a mask's matrix (m), (n, m) or (h, n, m); an axis of length 1 holds for all."""
    place = (r, i, j)[-np.ndim(value) :]
    for axis in place:
        value = value[axis if len(value) > 1 else 0]
    return value


def added(mask: Any, r: int, i: int, j: int) -> float:
    if isinstance(mask, list):
        return sum(added(one, r, i, j) for one in mask)
    return float(at(mask["add"], r, i, j)) if isinstance(mask, Mapping) and "add" in mask else 0.0


def sinusoid(t: int, d: int, spec: Keys) -> list[float]:
    base, order = float(spec.get("base", 10000)), spec.get("order", "interleaved")
    row = [0.0] * d
    for i in range((d + 1) // 2):
        angle = t / base ** (2 * i / d)
        sine, cosine = (2 * i, 2 * i + 1) if order == "interleaved" else (i, (d + 1) // 2 + i)
        row[sine] = math.sin(angle)
        if 2 * i + 1 < d:
            row[cosine] = math.cos(angle)
    return row
