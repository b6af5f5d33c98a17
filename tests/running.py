"""Run the program inside the test's process, as a shell would: words in, exit code and both outputs out."""

from __future__ import annotations

import io
import os
import sys
from dataclasses import dataclass
from unittest.mock import patch

from attncli.cli import app as cli

PLAIN = dict.fromkeys(("NO_COLOR", "FORCE_COLOR", "COLUMNS", "ATTNCLI_DEBUG"), "") | {"TERM": "xterm-256color"}
"""An environment that says nothing about screens."""


@dataclass(frozen=True)
class Done:
    """What a run left behind."""

    code: int
    data: bytes
    error: str

    @property
    def text(self) -> str:
        return self.data.decode()


class Terminal(io.TextIOWrapper):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def run(
    *words: object, stdin: bytes = b"", encoding: str = "utf-8", terminal: bool = False, **environment: str
) -> Done:
    """The program with these words. Keyword arguments in capitals are environment variables."""
    kind = Terminal if terminal else io.TextIOWrapper
    out, err = kind(io.BytesIO(), encoding=encoding), io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    coming = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    with (
        patch.dict(os.environ, PLAIN | environment),
        patch.multiple(sys, stdout=out, stderr=err, stdin=coming),
    ):
        code = cli.run([str(word) for word in words])
        out.flush()
        err.flush()
    return Done(code, out.buffer.getvalue(), err.buffer.getvalue().decode(encoding))  # type: ignore[attr-defined]


def data(*words: object, **more: str) -> bytes:
    """The standard output of a run that must go well and say nothing else."""
    done = run(*words, **more)  # type: ignore[arg-type]
    assert (done.code, done.error) == (0, "")
    return done.data
