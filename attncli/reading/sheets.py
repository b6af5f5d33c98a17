"""Answer sheets: stages as somebody wrote them down, in YAML, JSON, CSV or .npz, or as a problem's own `expect`."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from attncli.language import literals
from attncli.language.errors import AttncliError, Collector, Place
from attncli.language.written import Written
from attncli.maths.ops import Array
from attncli.model.sheet import AnswerSheet, SheetStage, of_array, unreadable
from attncli.reading import delimited, documents, files, forms, matrices
from attncli.reading.arrays import Archive
from attncli.reading.lists import Matrix, Wanted
from attncli.reading.mistakes import raise_some
from attncli.reading.nodes import Document, Held, Mapping, Node, Numbers, Scalar, Sequence
from attncli.stages.table import STAGES

ABOUT = ("title", "source", "note", "name", "student")
"""Keys of a sheet that are no stage."""

_TIDY = ("stage", "row", "column", "value")


_SINGLE = (".npy", ".csv", ".tsv", ".txt")
"""Suffixes of files that may hold one matrix: its stage is the file's name, weights.npy."""


def read_sheet(source: str | os.PathLike[str], *, stage: str | None = None) -> AnswerSheet:
    """The answer sheet in a file, in a folder with a file a stage, or "-" for standard input.

    YAML and JSON: stage → matrix, perhaps under `expect`. An entry null, ~ or ? is not judged; {2: [...], 3: [...]}
    gives only some rows. .npz: an array a stage. CSV: columns stage, head, row, column, value; or a plain matrix, as
    .npy is: ``stage`` says of which stage, or the file's name does. Its paths may not leave its folder.

    Raises AttncliError where it can't be read or names an unknown stage. What is wrong within one stage becomes that
    stage's ``error``, and the others are read all the same.
    """
    text = os.fspath(source)
    if os.path.isdir(text):
        return read_dump([os.path.join(text, name) for name in sorted(os.listdir(text)) if _is_of_a_stage(name)], text)
    if text == "-":
        content, name = files.from_bytes(documents.standard_input(files.MAX_TEXT), "standard input"), "standard input"
    else:
        content, name = files.load(Path(text), text), text
    return of_content(content, name, stage)


def is_dump(names: list[str]) -> bool:
    """Whether several files are the stages of one sheet: arrays in one folder, called after stages (weights.npy)."""
    paths = [Path(name) for name in names]
    alike = len({path.parent for path in paths}) == 1 and len({path.stem for path in paths}) == len(paths) > 1
    return alike and (
        all(map(_is_of_a_stage, names))
        or (all(path.suffix == ".npy" for path in paths) and any(map(_is_of_a_stage, names)))
    )


def read_dump(names: list[str], name: str) -> AnswerSheet:
    """The sheet whose stages lie in a file each."""
    if not names:
        hint = f"A dump's files are called after stages: weights.npy. The sheets of a class are {name}/*.yaml."
        raise AttncliError("no file of a stage is in this folder", hint=hint, where=Place(name))
    stages: dict[str, SheetStage] = {}
    for one in names:
        if not _is_of_a_stage(one):
            raise unknown_stage(Path(one).stem, Place(one))
        stages |= read_sheet(one).stages
    return AnswerSheet({stage: stages[stage] for stage in STAGES if stage in stages}, name)


def _is_of_a_stage(name: str) -> bool:
    return Path(name).stem in STAGES and Path(name).suffix.lower() in _SINGLE


def of_content(content: files.Content, name: str, stage: str | None = None) -> AnswerSheet:
    """The sheet in a file that was opened."""
    if stage is not None and stage not in STAGES:
        raise unknown_stage(stage, None)
    if isinstance(content, Archive):
        return _of_archive(content, name)
    if not isinstance(content, Document):
        return AnswerSheet({_told(stage, name): of_array(np.asarray(content))}, name)
    content.confined = True
    if _is_delimited(content):
        return _of_delimited(content, name, stage)
    node = documents.parse(content)
    if isinstance(node, Sequence | Numbers):
        return AnswerSheet({_told(stage, name): stage_of(node, _told(stage, name))}, name)
    if not isinstance(node, Mapping):
        raise AttncliError("there is no answer on this sheet", hint="Write stage: matrix.", where=Place(name))
    return of_node(node, name)


def _told(stage: str | None, name: str) -> str:
    if stage is None and _is_of_a_stage(name):
        return Path(name).stem
    if stage is None:
        hint = "Say of which stage it is (-s weights), call the file weights.npy, or write weights: [[...]]."
        raise AttncliError("this is a single matrix, of no stage", hint=hint, where=Place(name))
    return stage


def of_node(node: Node, name: str) -> AnswerSheet:
    """The sheet that a tree of stages writes; ``expect`` may hold them."""
    if not isinstance(node, Mapping):
        raise node.error("an answer sheet is a list of stages: weights: [[...]]", key=name)
    inner = node.items.get("expect")
    if isinstance(inner, Mapping):
        node = inner
    errors, stages = Collector(), {}
    for stage, value in node.items.items():
        if stage in STAGES:
            if not (isinstance(value, Scalar) and value.text.strip() in delimited.BLANKS):
                stages[stage] = stage_of(value, stage)
        elif stage not in ABOUT:
            errors.add(unknown_stage(stage, node.keys[stage].place()))
    raise_some(errors, lambda _: None)
    return AnswerSheet(stages, name)


def unknown_stage(stage: str, where: Place | None) -> AttncliError:
    """The error for a name that is no stage, with the nearest that is."""
    from attncli.stages.meant import stage_meant

    meant = stage_meant(stage)
    hint = f"Did you mean {meant}?" if meant else f"Stages are {', '.join(STAGES)}."
    return AttncliError(f"{stage!r} is no stage", hint=hint, where=where)


def stage_of(node: Node, name: str) -> SheetStage:
    """One stage; what is wrong with it becomes its ``error``."""
    try:
        if isinstance(node, Held):
            return of_array(_numeric(node))
        if isinstance(node, Mapping) and not any(key in forms.FORMS for key in node.items):
            return _of_rows(node, name)
        if isinstance(node, Sequence) and node.items and all(isinstance(item, Mapping) for item in node.items):
            return _of_heads(node.items, name)
        return _of_matrix(matrices.read(node, Wanted(name, blanks=True)))
    except AttncliError as error:
        return unreadable(error)


def _numeric(node: Held) -> Array:
    if node.array.dtype.kind not in "biuf":
        raise AttncliError(f"{node.label} holds text, not numbers")
    return node.array


def _of_matrix(matrix: Matrix) -> SheetStage:
    if matrix.array is None:
        raise AttncliError("identity has no size here", hint="Write {identity: 2}.")
    if matrix.written is None:
        return of_array(matrix.array if matrix.stored is None else matrix.array.astype(matrix.stored))
    texts = matrix.written.texts
    flat = texts.ravel()
    judged = np.array([text not in delimited.BLANKS for text in flat], dtype=bool)
    exact, decimals = np.zeros(flat.size, dtype=bool), np.zeros(flat.size, dtype=int)
    for i, text in enumerate(flat):
        if judged[i]:
            decimals[i], exact[i] = literals.how_written(text)
    shape = texts.shape
    shown = np.where(judged, flat, "?").reshape(shape)
    return SheetStage(matrix.array, judged.reshape(shape), decimals.reshape(shape), exact.reshape(shape), shown)


def _of_rows(node: Mapping, name: str) -> SheetStage:
    """{2: [...], 3: [...]}: some rows by their numbers; {1: {2: [...]}, 2: {...}}: the same for each head."""
    numbers = []
    for key in node.keys.values():
        if not re.fullmatch(r"[1-9][0-9]{0,6}", key.text):
            hint = "Some rows of a matrix are written {2: [0.5, 0.5], 3: [0.1, 0.9]}."
            raise key.error(f"{name}: {key.text!r} is no number of a row", hint=hint)
        numbers.append(int(key.text))
    if not numbers:
        raise node.error(f"{name} is empty")
    values = list(node.items.values())
    if all(isinstance(value, Mapping) for value in values):
        heads: list[Node | None] = [None] * min(max(numbers), 1000)
        for number, value in zip(numbers, values, strict=True):
            if number <= len(heads):
                heads[number - 1] = value
        return _of_heads(heads, name)
    rows = Sequence(node.document, node.start, node.end, values)
    stage = _of_matrix(matrices.read(rows, Wanted(name, blanks=True)))
    return _with_rows(stage, tuple(numbers))


def _with_rows(stage: SheetStage, rows: tuple[int, ...]) -> SheetStage:
    return replace(stage, rows=rows)


def _of_heads(nodes: Any, name: str) -> SheetStage:
    """One {row: [...]} a head: the rows that any of them gives, left open where a head gives none."""
    heads = [_of_rows(node, name) if isinstance(node, Mapping) else None for node in nodes]
    given = [head for head in heads if head is not None]
    if any(head.value.ndim != 2 or head.rows is None for head in given):
        raise AttncliError(f"{name}: a head's rows are written {{2: [0.5, 0.5]}}")
    widths = {head.value.shape[1] for head in given}
    if len(widths) > 1:
        raise AttncliError(f"{name}: the rows of its heads have {' and '.join(map(str, sorted(widths)))} numbers")
    rows = tuple(sorted({row for head in given for row in head.rows or ()}))
    shape = (len(heads), len(rows), widths.pop())
    whole = _open(shape)
    for r, head in enumerate(heads):
        for i, row in enumerate(head.rows or ()) if head is not None else ():
            assert head is not None
            for own, part in _arrays(whole, head):
                own[r, rows.index(row)] = part[i]
    return _with_rows(whole, rows)


def _open(shape: tuple[int, ...]) -> SheetStage:
    """A stage of which nothing is judged yet."""
    texts = np.empty(shape, dtype=object)
    texts.fill("?")
    return SheetStage(np.full(shape, np.nan), np.zeros(shape, bool), np.zeros(shape, int), np.zeros(shape, bool), texts)


def _arrays(one: SheetStage, other: SheetStage) -> list[tuple[Any, Any]]:
    return [(getattr(one, name), getattr(other, name)) for name in ("value", "judged", "decimals", "exact", "texts")]


def _of_archive(archive: Archive, name: str) -> AnswerSheet:
    stages = {}
    for stage in archive:
        if stage in STAGES:
            try:
                stages[stage] = of_array(_numeric(Held(Document("", name), archive[stage], f"{name}:{stage}")))
            except AttncliError as error:
                stages[stage] = unreadable(error)
        elif stage not in ABOUT:
            raise unknown_stage(stage, Place(name))
    return AnswerSheet(stages, name)


# CSV


def _is_delimited(document: Document) -> bool:
    name = (document.name or "").lower()
    first = document.text.lstrip().partition("\n")[0]
    return name.endswith((".csv", ".tsv", ".txt")) or bool(re.match(r'"?stage"?[,;\t]', first))


def _of_delimited(document: Document, name: str, stage: str | None) -> AnswerSheet:
    rows = delimited.lines(document)
    header = [cell.strip().lower() for cell in rows[0].cells] if rows else []
    if all(column in header for column in _TIDY):
        return AnswerSheet(_of_tidy(rows, header, document), name)
    told = _told(stage, name)
    try:
        table = delimited.read(document, blanks=True)
    except AttncliError as error:
        return AnswerSheet({told: unreadable(error)}, name)
    return AnswerSheet({told: _of_matrix(Matrix(table.array, Written(table.texts)))}, name)


def _of_tidy(rows: list[delimited.Row], header: list[str], document: Document) -> dict[str, SheetStage]:
    """stage, batch.., head, row, column, value: a line an entry; entries without a line are left open."""
    axes = [name for name in header if name.startswith("batch")] + ["head", "row", "column"]
    entries: dict[str, dict[tuple[int, ...], str]] = {}
    for row in rows[1:]:
        cells = dict(zip(header, (cell.strip() for cell in row.cells), strict=False))
        stage, where = cells.get("stage", ""), Place(document.name, row.line)
        if stage not in STAGES:
            raise unknown_stage(stage, where)
        index = [cells.get(axis, "") for axis in axes]
        if not all(re.fullmatch(r"[1-9][0-9]{0,6}", place) for place in index if place) or not (
            index[-1] and index[-2]
        ):
            raise AttncliError("row, column and head are numbers that count from 1", where=where)
        key = tuple(int(place) - 1 for place in index if place)
        if key in entries.setdefault(stage, {}):
            raise AttncliError(f"{stage}[{','.join(place for place in index if place)}] is given twice", where=where)
        entries[stage][key] = cells.get("value", "")
    return {stage: _of_entries(stage, found) for stage, found in entries.items()}


def _of_entries(stage: str, found: dict[tuple[int, ...], str]) -> SheetStage:
    try:
        if len({len(key) for key in found}) > 1:
            raise AttncliError(f"{stage}: some lines name a head and some don't")
        shape = tuple(max(sizes) + 1 for sizes in zip(*found, strict=True))
        if np.prod(shape) > delimited.MAX_CELLS:
            raise AttncliError(f"{stage} has {int(np.prod(shape)):,} entries")
        whole = _open(shape)
        for key, text in found.items():
            if text not in delimited.BLANKS:
                number = literals.parse(text)
                whole.value[key], whole.judged[key], whole.decimals[key] = number.value, True, number.decimals
                whole.exact[key], whole.texts[key] = number.exact, number.text  # type: ignore[index]
        return whole
    except AttncliError as error:
        return unreadable(error)
