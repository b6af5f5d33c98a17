"""What is set in a problem and is no array: words, numbers, counts, labels. Each is read from the keys, or refused.

A mistake is added to the errors (with the key that is meant), and something harmless returned in its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from attncli.language.errors import AttncliError, Collector
from attncli.model.keys import KEYS, unknown_key
from attncli.stages.table import STAGES

MOST_DECIMALS = 30
"""To how many decimals a stage can be rounded; a float64 has 17 digits."""


def choice(keys: Mapping[str, Any], name: str, errors: Collector) -> str:
    """One of the words that a key takes; the first of them where it is not given."""
    choices = KEYS[name].choices
    value = keys.get(name, choices[0])
    if value not in choices:
        from attncli.stages.meant import choice_meant

        hint = choice_meant(str(value), choices)
        errors.add(AttncliError(f"{name} is {value!r}, and may be {', '.join(choices)}", hint=hint, key=name))
        return choices[0]
    return str(value)


def number(keys: Mapping[str, Any], name: str, errors: Collector, positive: bool = False) -> Any:
    """A finite number (above 0, if so), or None where it is not given."""
    value = keys.get(name)
    if value is None or (not isinstance(value, (str, bool)) and np.ndim(value) == 0):
        finite = value is None or not isinstance(value, (int, float, np.generic)) or np.isfinite(value)
        if finite and not (positive and value is not None and value <= 0):
            return value
    errors.add(AttncliError(f"{name} takes a {'positive ' if positive else ''}finite number, not {value!r}", key=name))
    return None


def flag(keys: Mapping[str, Any], name: str, errors: Collector) -> bool:
    """True or false; false where it is not given."""
    value = keys.get(name, False)
    if not isinstance(value, (bool, np.bool_)):
        errors.add(AttncliError(f"{name} is true or false, not {value!r}", key=name))
        return False
    return bool(value)


def count(
    keys: Mapping[str, Any], name: str, errors: Collector, least: int = 1, most: int = 10**6, inside: str = ""
) -> int | None:
    """A whole number between bounds; ``inside`` is what the name stands in, with its dot ("round.")."""
    value = keys.get(name)
    if value is None:
        return None
    whole = not isinstance(value, (str, bool)) and np.ndim(value) == 0 and float(value).is_integer()
    if not whole or not least <= float(value) <= most:
        upper = f"to {most:,}" if most < 100 or (whole and float(value) > most) else "on"
        what = f"{inside}{name} takes a whole number from {least} {upper}, not {value!r}"
        errors.add(AttncliError(what, key=inside + name))
        return None
    return int(value)


def decimals(keys: Mapping[str, Any], errors: Collector) -> int | dict[str, int] | None:
    """``round: 2`` for every stage, or ``round: {weights: 2}`` for some."""
    value = keys.get("round")
    if not isinstance(value, Mapping):
        return count(keys, "round", errors, least=0, most=MOST_DECIMALS)
    if not value:
        errors.add(AttncliError("round names no stage", hint="Write round: 2, or round: {weights: 2}.", key="round"))
    for name in value:
        if name not in STAGES:
            errors.add(unknown_key(str(name), tuple(STAGES), f"round.{name}"))
    counts = {name: count(value, name, errors, least=0, most=MOST_DECIMALS, inside="round.") for name in value}
    return {name: count for name, count in counts.items() if count is not None}


def labels(keys: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    """Labels, or None where they are not given. Raises AttncliError where it is no list."""
    value = keys.get(name)
    if value is not None and (isinstance(value, str) or np.ndim(value) != 1):
        raise AttncliError(f"{name} is a list of labels", hint=f"Write {name}: [{value}]", key=name)
    return None if value is None else tuple(str(label) for label in value)
