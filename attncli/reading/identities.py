"""`identity` takes its size from the matrices around it, once these are read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np

from attncli.reading.nodes import Node


class Identity:
    """An identity matrix of a size to be found; the node is where it was written."""

    def __init__(self, node: Node) -> None:
        self.node = node


def is_open(value: Any) -> bool:
    """Whether a key's value is, or holds, an identity whose size is not known."""
    if isinstance(value, list):
        return any(is_open(part) for head in value if isinstance(head, dict) for part in head.values())
    return isinstance(value, Identity)


def resolve(values: dict[str, Any], *, stand_in_for: Collection[str] = ()) -> None:
    """Put identity matrices of the right size in the place of each `identity`. Raises AttncliError where none is.

    ``stand_in_for`` names weights that could not be read: zeros take their place, so that the others can be checked.
    """
    for name in ("W_Q", "W_K", "W_V"):
        if name in stand_in_for and (width := _width_of_source(name, values)):
            values[name] = np.zeros((width, next(_columns_of_others(values), width)))
    for name in [name for name, value in values.items() if isinstance(value, Identity) and name != "W_O"]:
        values[name] = _made(name, name, values[name], values)
    for r, head in enumerate(values.get("heads", ()), 1):
        for name in [name for name, value in head.items() if isinstance(value, Identity)]:
            size = _width_of_values(head) if name == "W_O" else None
            head[name] = _made(f"heads.{r}.{name}", name, head[name], values, size)
    if isinstance(values.get("W_O"), Identity):
        values["W_O"] = _made("W_O", "W_O", values["W_O"], values, _width_of_all_values(values))


def _made(path: str, name: str, identity: Identity, values: Mapping[str, Any], size: int | None = None) -> Any:
    size = size or _width_of_source(name, values)
    if size is None:
        hint = "Give its size: {identity: 2}."
        raise identity.node.error(f"{path}: nothing says how large this identity is", hint=hint, key=path)
    return np.eye(size)


def _width_of_source(name: str, values: Mapping[str, Any]) -> int | None:
    """How wide that is which a weight multiplies."""
    widths = [_width(values, key) for key in _SOURCES.get(name, ())]
    return next((width for width in widths if width), None)


def _columns_of_others(values: Mapping[str, Any]) -> Iterator[int]:
    arrays = (values.get(name) for name in ("W_Q", "W_K", "W_V"))
    return (array.shape[1] for array in arrays if isinstance(array, np.ndarray) and array.ndim == 2)


_SOURCES = {
    "W_Q": ("Z",),
    "W_K": ("memory", "Z"),
    "W_V": ("memory_V", "memory", "Z"),
}
"""What each matrix multiplies, the first that is given."""


def _width(values: Mapping[str, Any], name: str) -> int | None:
    """How wide a token is: the columns of Z, or its rows in the column layout."""
    array = values.get(name)
    if not isinstance(array, np.ndarray):
        return None
    columns = values.get("layout") == "columns" and array.ndim > 1
    return int(array.shape[-2 if columns else -1])


def _width_of_values(head: Mapping[str, Any], transposed: bool = False) -> int | None:
    array = head.get("W_V")
    return int(array.shape[-2 if transposed else -1]) if isinstance(array, np.ndarray) else None


def _width_of_all_values(values: Mapping[str, Any]) -> int | None:
    """h·d_v: the columns of the concatenated outputs."""
    stored_out_in = values.get("weight_layout", "out_in" if values.get("layout") == "columns" else "in_out") == "out_in"
    if "heads" in values:
        widths = [_width_of_values(head, stored_out_in) for head in values["heads"]]
        return sum(width for width in widths if width) or None
    width = _width_of_values(values, stored_out_in) or _width(values, "V")
    heads, shared = values.get("num_heads", 1), values.get("num_kv_heads")
    if width and shared and isinstance(heads, int) and isinstance(shared, int) and shared > 0:
        return width // shared * heads
    return width
