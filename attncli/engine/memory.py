"""How much memory stages take, and a refusal before the work starts where there isn't as much."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import TYPE_CHECKING

from attncli.language.errors import AttncliError
from attncli.stages.table import STAGES, is_present

if TYPE_CHECKING:
    from attncli.stages.inputs import LayerInputs


def bytes_of(problem: LayerInputs, names: Iterable[str]) -> int:
    """What the arrays of these stages take, in bytes."""
    return sum(prod(STAGES[name].shape(problem)) * problem.dtype.itemsize for name in names)


def needed_for(problem: LayerInputs, names: Iterable[str]) -> int:
    """What computing these stages takes, in bytes: their arrays, and the work on the largest of them."""
    sizes = [bytes_of(problem, [name]) for name in names]
    return sum(sizes) + 2 * max(sizes, default=0)


def is_beyond_memory(problem: LayerInputs, names: Iterable[str]) -> bool:
    """Whether these stages take more than the memory that is free."""
    return _shortage(problem, names) is not None


def _shortage(problem: LayerInputs, names: Iterable[str]) -> tuple[int, int] | None:
    """What these stages take and what is free, in bytes; None where that is enough, or unknown."""
    need, free = needed_for(problem, names), available()
    return None if free is None or need <= free else (need, free)


def refuse_beyond_memory(problem: LayerInputs, names: Iterable[str]) -> None:
    """Raise AttncliError where the stages, and the work on the largest of them, exceed the memory that is free."""
    names = list(names)
    shortage = _shortage(problem, names)
    if shortage is None:
        return
    need, free = shortage
    blocked = [name for name, stage in STAGES.items() if stage.blocked and is_present(problem, name)]
    last = blocked[-1] if blocked else None
    hints = [f"{', '.join(names)} would all be held at once."]
    if last and names != [last]:
        alone = said(bytes_of(problem, [last]))
        hints.append(f"-s {last} alone takes {alone}: it is made by blocks of rows, and no n × m array is held.")
    raise AttncliError(f"this takes {said(need)} of memory, and {said(free)} is free", hint=hints)


def available() -> int | None:
    """Memory that is free for use, in bytes; None where the system doesn't say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    import os

    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" not in names:
        return None
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def said(number: float) -> str:
    """A number of bytes for people.

    >>> said(34_359_738_368), said(1008)
    ('32 GiB', '1008 bytes')
    """
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if number < 1024 or unit == "PiB":
            break
        number /= 1024
    return f"{number:.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"
