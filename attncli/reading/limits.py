"""How much a document may hold, and the count that holds its reader to that: of hostile input nothing runs away."""

from __future__ import annotations

from attncli.language.errors import AttncliError, Place
from attncli.reading.nodes import Document

MAX_NODES = 3_000_000
"""How many values a document may hold, aliases expanded."""
MAX_PARSED = 150_000
"""How many of them may be anything but plain numbers in lists, which take longer to read."""
MAX_DEPTH = 50


class TooLargeError(AttncliError):
    """A document of more values than are read."""


def too_large(document: Document, limit: int = MAX_NODES) -> TooLargeError:
    """The error for a document of too many values."""
    hint = "Save large matrices as .npy files (numpy.save) and name these: W_Q: w_q.npy."
    return TooLargeError(f"more than {limit:,} values", where=Place(document.name), hint=hint)


class Count:
    """Counts the nodes of a document, aliases expanded, up to the limit."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.nodes = 0
        self.parsed = 0

    def add(self, nodes: int) -> None:
        """Count what was read at once, or again through an alias."""
        self.nodes += nodes
        if self.nodes > MAX_NODES:
            raise too_large(self.document)

    def add_one(self) -> None:
        """Count a node that the parser made."""
        self.parsed += 1
        self.nodes += 1
        if self.parsed > MAX_PARSED:
            raise too_large(self.document, MAX_PARSED)
