"""YAML to nodes with places, from the parser's events. The C parser is taken where PyYAML has it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import yaml

from attncli.language.errors import AttncliError, Place
from attncli.reading.lifting import Lifted
from attncli.reading.limits import MAX_DEPTH, MAX_NODES, Count
from attncli.reading.nodes import Document, Mapping, Node, Numbers, Scalar, Sequence

_C_LOADER = getattr(yaml, "CSafeLoader", None)
_HARMLESS_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("float", "int", "str", "seq", "map", "bool", "null")} | {"!"}
_INDENTING_TAB = re.compile(r"^ *+(\t)[ \t]*+(?=[^ \t\n])", re.MULTILINE)
_MAX_TABS = 50


def tree(document: Document, text: str, lists: dict[int, Lifted], *, pure: bool = False) -> Node | None:
    """The tree of a YAML text; None where it is empty. Raises AttncliError with line and column."""
    for _ in range(_MAX_TABS):
        try:
            return _Builder(document, text, lists, pure or _C_LOADER is None).whole()
        except _SeparatingTab as tab:
            text = f"{text[: tab.at]} {text[tab.at + 1 :]}"
    raise AttncliError("more tabs than a YAML text can have", hint="Use spaces.", where=Place(document.name))


class _SeparatingTab(Exception):  # noqa: N818 (it never leaves this module)
    """The parser written in Python refuses tabs between values, which the C parser takes as blanks."""

    def __init__(self, at: int) -> None:
        self.at = at


class _Builder:
    """Builds nodes from events; each method takes the event that starts its part."""

    def __init__(self, document: Document, text: str, lists: dict[int, Lifted], pure: bool) -> None:
        self.document = document
        self.text = text
        self.lists = lists
        parser: Any = (yaml.SafeLoader if pure else _C_LOADER)(text)  # type: ignore[misc]
        self.next = parser.get_event
        self.pure = pure
        self.count = Count(document)
        self.anchors: dict[str, tuple[Node, int]] = {}
        self.tabs = [match.start(1) for match in _INDENTING_TAB.finditer(document.text)]
        self.texts: list[tuple[int, int]] = []

    def whole(self) -> Node | None:
        try:
            self.next()  # the stream starts
            event = self.next()
            if isinstance(event, yaml.StreamEndEvent):
                self.refuse_tabs()
                return None
            node = self.node(self.next(), 1)
            self.next()  # the document ends
            event = self.next()
        except yaml.YAMLError as error:
            mark: Any = getattr(error, "problem_mark", None)
            self.refuse_tabs(mark)
            if self.pure and mark is not None and self.text[mark.index : mark.index + 1] == "\t":
                raise _SeparatingTab(mark.index) from None
            raise _translated(error, self.document) from None
        if not isinstance(event, yaml.StreamEndEvent):
            place = self.document.place(event.start_mark.index)
            raise AttncliError(
                "a second document starts here", hint="Drop the line --- or split the file.", where=place
            )
        self.refuse_tabs()
        return node

    def refuse_tabs(self, mark: Any = None) -> None:
        """A tab that indents a line is refused by one of the two parsers, whatever stands there: say so for both."""
        for tab in self.tabs:
            if mark is not None and tab > mark.index:
                return
            if not any(start <= tab < end for start, end in self.texts):
                raise _tab(self.document, tab)

    def node(self, event: Any, depth: int) -> Node:
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event)
        if event.tag is not None and event.tag not in _HARMLESS_TAGS:
            place = self.document.place(event.start_mark.index, event.end_mark.index)
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            raise AttncliError(f"a YAML tag, {tag}", hint="Tags are not read. Drop it.", where=place)
        if depth > MAX_DEPTH:
            place = self.document.place(event.start_mark.index)
            raise AttncliError(f"nested more than {MAX_DEPTH} deep", where=place)
        before = self.count.nodes
        if isinstance(event, yaml.ScalarEvent):
            node: Node = self.scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            node = self.sequence(event, depth)
        else:
            node = self.mapping(event, depth)
        if event.anchor is not None:
            self.anchors[event.anchor] = node, self.count.nodes - before
        return node

    def alias(self, event: Any) -> Node:
        found = self.anchors.get(event.anchor)
        if found is None:
            place = self.document.place(event.start_mark.index, event.end_mark.index)
            hint = "Quote the text if no alias is meant."
            raise AttncliError(f"*{event.anchor} stands for nothing before it", hint=hint, where=place)
        if self.count.nodes + found[1] > MAX_NODES:
            place = self.document.place(event.start_mark.index, event.end_mark.index)
            raise AttncliError(f"the aliases stand for more than {MAX_NODES:,} values", where=place)
        self.count.add(found[1])
        return found[0]

    def scalar(self, event: Any) -> Scalar:
        self.count.add_one()
        start, end, text = event.start_mark.index, event.end_mark.index, event.value
        if not event.style:
            if text == "~" and start in self.lists:
                self.lists[start].met = True
                text = "?"
            if self.tabs:
                self.texts.append((start, end))
            return Scalar(self.document, start, end, text, True)
        self.texts.append((start, end))
        if event.style == '"' and not _encodable(text):
            place = self.document.place(start, end)
            raise AttncliError("half of a character pair in a text", hint="Write the character itself.", where=place)
        return Scalar(self.document, start, end, text, False)

    def sequence(self, event: Any, depth: int) -> Node:
        start = event.start_mark.index
        lifted = self.lists.get(start)
        if lifted is not None:
            end = self.next()
            if isinstance(end, yaml.SequenceEndEvent):
                return self.numbers(lifted)
            raise AttncliError("a list that was lifted holds something")  # never: its inside is blank
        items: list[Node] = []
        add, node, take = items.append, self.node, self.next
        event = take()
        while type(event) is not yaml.SequenceEndEvent:
            add(node(event, depth + 1))
            event = take()
        self.count.add_one()
        return _with_lines_in_place(Sequence(self.document, start, _end(event), items))

    def numbers(self, lifted: Lifted) -> Numbers:
        lifted.met = True
        array = np.asarray(lifted.array)
        self.count.add_one()
        self.count.add(array.size)
        return Numbers(self.document, lifted.start, lifted.end, array, lines=lifted.lines)

    def mapping(self, event: Any, depth: int) -> Node:
        self.count.add_one()
        start: int = event.start_mark.index
        mapping = Mapping(self.document, start, start)
        event = self.next()
        while type(event) is not yaml.MappingEndEvent:
            key = self.node(event, depth + 1)
            mapping.put(key, self.node(self.next(), depth + 1))
            event = self.next()
        mapping.end = _end(event)
        return mapping


def _end(event: Any) -> int:
    index: int = event.end_mark.index
    return index


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _with_lines_in_place(sequence: Sequence) -> Node:
    """Lifted runs of "- 1" or "- [1, 2]" lines are items of the sequence around them, and often all of it."""
    if not any(isinstance(item, Numbers) and item.lines for item in sequence.items):
        return sequence
    if len(sequence.items) == 1:
        only = sequence.items[0]
        assert isinstance(only, Numbers)
        return Numbers(only.document, sequence.start, only.end, only.array)
    items: list[Node] = []
    for item in sequence.items:
        items += item.spelled_out().items if isinstance(item, Numbers) and item.lines else [item]
    sequence.items = items
    return sequence


def _tab(document: Document, at: int) -> AttncliError:
    return AttncliError("a tab indents this line", hint="YAML wants spaces. Replace the tab.", where=document.place(at))


def _translated(error: yaml.YAMLError, document: Document) -> AttncliError:
    """The parser's error in the words of somebody who writes matrices."""
    problem = str(getattr(error, "problem", None) or "it cannot be read")
    mark = getattr(error, "problem_mark", None)
    context, opened = str(getattr(error, "context", None) or ""), getattr(error, "context_mark", None)
    at = min(mark.index if mark else 0, len(document.text))
    where = document.place(at)
    if opened is not None and at >= len(document.text.rstrip()):
        kind = next((sign for word, sign in _OPENERS if word in context), None)
        if kind:
            return AttncliError(f"this {kind} is never closed", where=document.place(opened.index))
    if "nesting depth" in problem:
        return AttncliError(f"nested more than {MAX_DEPTH} deep", where=where)
    for word, what, hint in _MISTAKES:
        if word in problem or word in context:
            return AttncliError(f"not valid YAML: {what}", hint=hint, where=where)
    return AttncliError(f"not valid YAML: {problem}", where=where)


_OPENERS = (("flow sequence", "["), ("flow mapping", "{"), ("quoted scalar", "quote"))

_SAME_COLUMN = "Do the keys start in the same column? Is a quote missing?"
_MISTAKES = (
    (
        "mapping values",
        "a colon where none can stand",
        'Is the line indented by mistake? A text with ": " needs quotes.',
    ),
    ("expected ':'", "a colon is missing", "A key is followed by a colon and a blank: W_Q: [[1, 0], [0, 1]]"),
    ("cannot start any token", "a value cannot start with this character", "Put the text in quotes."),
    ("escape", "an unknown escape in a text", "In double quotes a \\ starts an escape: use single quotes."),
    ("node content", "a value was expected", "Is there a comma too many, or a bracket that is never closed?"),
    ("flow sequence", "a comma or ] was expected", "Is a comma or a ] missing before this?"),
    ("flow mapping", "a comma or } was expected", "Is a comma or a } missing before this?"),
    ("expected key", "this line fits nothing before it", _SAME_COLUMN),
    ("block mapping", "this line fits nothing before it", _SAME_COLUMN),
    ("block collection", "this line fits nothing before it", "Do the rows' dashes stand in the same column?"),
    ("block sequence", "this line fits nothing before it", "Do the rows' dashes stand in the same column?"),
)
"""What the parsers say (a part of it, which both have in common), what it means, and how to mend it."""
