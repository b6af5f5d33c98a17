"""Suggestions: which stage, or which of some words, a mistyped or foreign word probably means. Read only for errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from attncli.stages.table import STAGES

_CHOICE_ALIASES = {
    "double": "float64", "single": "float32", "half": "float16", "fp64": "float64", "fp32": "float32",
    "fp16": "float16", "bfloat16": None, "float8": None, "bilinear": "general", "multiplicative": "general",
    "bahdanau": "additive", "scaled": "scaled_dot",
}  # fmt: skip
"""What others call the words that settings take; None for what is like one of them, and something else."""

_KEY_ALIASES = {
    "x": "Z", "input": "Z", "inputs": "Z", "embeddings": "Z", "h": "num_heads", "nhead": "num_heads",
    "nheads": "num_heads", "numattentionheads": "num_heads", "g": "num_kv_heads", "nkvheads": "num_kv_heads",
    "numkeyvalueheads": "num_kv_heads", "wout": "W_O", "causal": "mask: causal",
    "query": "Q", "queries": "Q", "key": "K", "keys": "K", "value": "V", "values": "V", "m": "memory",
}  # fmt: skip
"""What others call keys of a problem, in small letters without underscores."""

_SIZES = {"dk", "dv", "dmodel", "dmemory", "dhead", "headdim", "embeddim", "hiddensize", "n", "m", "seqlen"}
"""What others set and here follows from the matrices."""


def stage_meant(word: str) -> str | None:
    """The stage that a word is the symbol of (A, S, O), or another name for, or nearly the name of.

    >>> stage_meant("A"), stage_meant("weigths"), stage_meant("attn"), stage_meant("Z")
    ('weights', 'weights', 'weights', None)
    """
    plain = word.strip().lower().replace("\u0303", "~")
    own = {name.lower(): name for name in STAGES}
    return (own | _symbols()).get(plain) or _nearest(plain, own)


def did_you_mean(word: str, known: Iterable[str]) -> tuple[str, ...]:
    """A hint that asks for the most similar of some words, whatever their case and underscores; or none."""
    close = _nearest(_plain(word), {_plain(one): one for one in known})
    return (f"Did you mean {close}?",) if close else ()


def key_hint(name: str, known: Sequence[str]) -> str | None:
    """What to tell a person who wrote a key that is none of the known ones; None where nothing comes near.

    >>> key_hint("Q_W", ["Z", "W_Q"]), key_hint("X", ["Z", "W_Q"])
    ('Did you mean W_Q?', 'Did you mean Z?')
    """
    plain = _plain(name)
    if plain in _SIZES and name != "M" and "num_heads" in known:
        return "Leave it out: sizes follow from the matrices."
    meant = _weight(plain) or _KEY_ALIASES.get(plain) or _symbols().get(plain)
    if meant is None or meant.partition(":")[0] not in known:
        meant = _nearest(plain, {_plain(one): one for one in known})
    return f"Did you mean {meant}?" if meant else None


def _weight(plain: str) -> str | None:
    """W_Q from qw, qproj, wquery, queryweight, b_Q from qbias and bquery: as other programs call weights and biases."""
    role = r"(q|k|v|o)(?:uery|ey|alue|ut|utput)?"
    for kind, words in (("W", "w|weights?|proj|projection"), ("b", "b|bias")):
        match = re.fullmatch(rf"{role}(?:{words})|{kind.lower()}{role}", plain)
        if match:
            return f"{kind}_{(match[1] or match[2]).upper()}"
    return None


def choice_meant(word: str, choices: Iterable[str]) -> tuple[str, ...]:
    """A hint that asks for the one of a setting's words that is meant; or none.

    >>> choice_meant("colums", ["rows", "columns"]), choice_meant("fp32", ["float64", "float32"])
    (('Did you mean columns?',), ('Did you mean float32?',))
    """
    meant = _CHOICE_ALIASES.get(word.lower(), word)
    return did_you_mean(meant, choices) if meant else ()


def _symbols() -> dict[str, str]:
    """The stages by the letters that stand for them (s, s~, a, o, concat; in small letters), and by their aliases."""
    letters = {name: re.match(r"[A-Za-z]+~?(?!.* )", stage.symbol) for name, stage in STAGES.items()}
    known = {found[0].lower(): name for name, found in letters.items() if found}
    return known | {alias: name for name, stage in STAGES.items() for alias in stage.aliases}


def _plain(word: str) -> str:
    return re.sub(r"[\s_-]", "", word.lower())


def _nearest(word: str, known: dict[str, str]) -> str | None:
    from difflib import get_close_matches

    close = get_close_matches(word, known, 1)
    return known[close[0]] if close else None
