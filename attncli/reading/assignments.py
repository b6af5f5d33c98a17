"""KEY=VALUE: sets or replaces a key of a problem, also inside one (``heads.2.W_Q=w.npy``, ``mask.lengths=3``)."""

from __future__ import annotations

import re

from attncli.language.errors import AttncliError, Place
from attncli.reading import documents, files
from attncli.reading.nodes import Document, Mapping, Node, Numbers, Opened, Scalar, Sequence

NAME = "KEY=VALUE"
TEXT_KEYS = ("title", "source", "note")
"""Keys whose value is taken as it stands, whatever YAML would make of it."""


class StandardInput:
    """Standard input, which can be read once; ``user`` is who reads it, for the message to the second one."""

    def __init__(self) -> None:
        self.user: str | None = None

    def read(self, user: str) -> files.Content:
        """What comes in: .npy, .npz, JSON, YAML or rows of numbers, told apart by content."""
        if self.user is not None:
            what = f"{user} reads standard input (-), and {self.user} does already"
            raise AttncliError(what, hint="Only one of them can. Save the other to a file.")
        self.user = user
        return files.from_bytes(documents.standard_input(files.MAX_STREAM), documents.STANDARD_INPUT)


def apply(root: Mapping, text: str, stdin: StandardInput) -> None:
    """Put one KEY=VALUE into the tree of a problem. Raises AttncliError with the user's own text and a caret."""
    path, equals, value = text.partition("=")
    if not equals:
        where = Place(NAME, None, 1, text, max(1, len(text)))
        raise AttncliError(f"{text!r} is no KEY=VALUE", hint="Write for example Z=z.npy or mask=causal.", where=where)
    if len(text) > files.MAX_TEXT:
        raise AttncliError(f"{path[:40]}=... is larger than {files.MAX_TEXT // 2**20} MB")
    parts = _parts(path)
    if not parts:
        where = Place(NAME, None, 1, text, max(1, len(path)))
        raise AttncliError("the key before = is empty", hint="Write for example Z=z.npy.", where=where)
    key = Scalar(Document(text, NAME, before=""), 0, len(path), parts[-1], True)
    put(root, parts, key, _value(path, value, parts, stdin))


def first_key(text: str) -> str:
    """The key of the problem that a KEY=VALUE is about: ``heads`` for ``heads.2.W_Q=w.npy``."""
    return next(iter(_parts(text.partition("=")[0])), "")


def _parts(path: str) -> list[str]:
    return [part for part in re.split(r"[.\[\]]", path.strip()) if part]


def _value(path: str, text: str, parts: list[str], stdin: StandardInput) -> Node:
    """The value's tree; its document shows the whole KEY=VALUE in messages."""
    text = documents.decode(text.encode("utf-8", "surrogateescape"), NAME)
    document = Document(text, NAME, before=path + "=")
    if parts[-1] in TEXT_KEYS:
        return Scalar(document, 0, len(text), text, False)
    if text.strip() == "-":
        return Opened(document, stdin.read(path), documents.STANDARD_INPUT)
    node = documents.parse(document)
    if node is None:
        where = Place(NAME, None, len(path) + 1, f"{path}={text}", 1)
        raise AttncliError(
            f"{path} has no value", hint=f"Write the value after the =: {path}=...", key=path, where=where
        )
    _open_file(node, path, stdin)
    return node


def _open_file(node: Node, path: str, stdin: StandardInput) -> None:
    """Where {file: -, key: K} stands in a value, what comes in is put in the place of the name."""
    if not isinstance(node, Mapping):
        return
    for name, inner in node.items.items():
        if name == "file" and isinstance(inner, Scalar) and inner.text.strip() == "-":
            node.items[name] = Opened(node.document, stdin.read(path), documents.STANDARD_INPUT)
        _open_file(inner, path, stdin)


def put(root: Mapping, parts: list[str], key: Scalar, value: Node) -> None:
    """Walk from the root to the last part but one, and set the last one there."""
    node: Node = root
    for i, part in enumerate(parts[:-1]):
        inner = _step(node, part, parts[: i + 1], key)
        if inner is None:
            inner = _new(parts[0], parts[i + 1], key)
            _set(node, part, inner, key, parts[: i + 1])
        elif isinstance(inner, Numbers):
            inner = inner.spelled_out()
            _set(node, part, inner, key, parts[: i + 1])
        node = inner
    _set(node, parts[-1], value, key, parts)


def _new(root_key: str, part: str, key: Scalar) -> Node:
    """What is made for a part that isn't there yet: a list where it is numbered (heads.1), but for an answer's rows."""
    if part.isdigit() and root_key != "expect":
        return Sequence(key.document, key.start, key.end, [])
    return Mapping(key.document, key.start, key.end)


def _step(node: Node, part: str, path: list[str], key: Scalar) -> Node | None:
    """The part of a node that an index or a key names; None where there is none yet."""
    if isinstance(node, Mapping):
        return node.items.get(part)
    if isinstance(node, Sequence):
        index = _index(node, part, path, key)
        return node.items[index] if index < len(node.items) else None
    raise _nothing_inside(path, key)


def _set(node: Node, part: str, value: Node, key: Scalar, path: list[str]) -> None:
    if isinstance(node, Mapping):
        node.items[part] = value
        node.keys[part] = Scalar(key.document, key.start, key.end, part, True)
    elif isinstance(node, Sequence):
        index = _index(node, part, path, key)
        node.items[index : index + 1] = [value]
    else:
        raise _nothing_inside(path, key)


def _index(node: Sequence, part: str, path: list[str], key: Scalar) -> int:
    """0-based, from a number that counts from 1; the one after the last appends."""
    name = ".".join(path[:-1])
    if not re.fullmatch(r"[0-9]{1,9}", part):
        raise key.error(f"{name} is a list, and {part!r} is no number of an entry", hint=f"Write for example {name}.1")
    if not 1 <= int(part) <= len(node.items) + 1:
        hint = "Entries count from 1." if int(part) == 0 else f"{name}.{len(node.items) + 1} would be the next."
        raise key.error(f"{name} has {len(node.items)} entries, and none with number {part}", hint=hint)
    return int(part) - 1


def _nothing_inside(path: list[str], key: Scalar) -> AttncliError:
    name = ".".join(path[:-1])
    return key.error(
        f"{name} is a single value, with nothing called {path[-1]!r} in it", hint=f"Set {name} as a whole."
    )
