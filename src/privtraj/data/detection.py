"""How a CSV file seems to be written: guesses for its steward, who declares what is right.

Nothing here is part of a fit: guesses look at all cells, so they are for `privtraj init`, which
writes them to a configuration to be checked, and for `privtraj check`. What decides is which
settings read most cells, never one cell alone where others say otherwise. Where cells do not tell
(01/02/2019, or nothing but 1,234), there is no guess but a question. No value of the data is ever
shown: signs for missing values are those of a public list.
"""

from __future__ import annotations

import codecs
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import compute

from privtraj.base.formats import READABLE, find_format
from privtraj.data.arrow import check_columns, kinds_of, unit_of
from privtraj.data.dialect import (
    BLANKS,
    DATE,
    DATE_FORMS,
    ISO,
    NUMBER,
    NUMBER_SIGNS,
    PLAIN,
    RIVALS,
    TEXT,
    CellKind,
    Dialect,
    Reading,
    Readings,
    read_cells,
    readable,
)
from privtraj.data.tables import CsvReader, reader_of

SAMPLE_BLOCKS = 4  # of a megabyte each, from which settings are guessed
LOOKED_AT = 64  # blocks in which cells are counted, so that a large file takes seconds

_MARKS = r"""
    -- --- . .. ? ?? * na Na n.a. N.A. n/A N/a k.A. k.a. None NONE none nil NIL Null (null) <NA>
    <null> \N NV n.v. N.V. nd ND n.d. N.D. missing Missing MISSING unknown Unknown UNKNOWN
    unbekannt Unbekannt leer #NV #WERT! #VALUE! #DIV/0! #REF! #NUM! #NULL! #NAME? #BEZUG!
"""
KNOWN_SIGNS = frozenset(_MARKS.split())
"""Texts by which people and programs mark what is missing, beside `cells.MISSING`."""


Questions = dict[str, tuple[str, ...]]
"""Settings that cells do not tell, and what each may be."""


@dataclass(frozen=True)
class Detected:
    """What a CSV file seems to be.

    columns: how many cells of each are read, with the settings of `dialect`.
    questions: settings that the cells do not tell, and what they may be.
    whole: whether all rows were counted.
    """

    dialect: Dialect
    columns: tuple[Readings, ...]
    questions: Questions
    whole: bool

    @property
    def kinds(self) -> list[tuple[str, str]]:
        """Name and kind of all columns: "number", "date" or "text"."""
        return [(column.name, column.kind.word) for column in self.columns]

    @property
    def units(self) -> dict[str, str]:
        """Of the columns whose names end in one."""
        units = {column.name: unit_of(column.name) for column in self.columns}
        return {name: unit for name, unit in units.items() if unit}

    @property
    def settings(self) -> dict[str, Any]:
        """What a configuration has to declare; questions are to be filled in."""
        return self.dialect.settings() | {word: f"<{word}>" for word in self.questions}

    def notes(self) -> list[str]:
        """Sentences about what is not as it should be, for whoever may see the data."""
        where = "" if self.whole else " (of the first rows)"
        asked = [
            f"{word} may be {' or '.join(forms)}, which the cells do not tell: fill it in"
            for word, forms in self.questions.items()
        ]
        odd = [column for column in self.columns if column.unreadable]
        return [*asked, *(column.error().typed() + where for column in odd)]


def is_csv(path: Path) -> bool:
    """Whether a file is one that has a dialect."""
    known = find_format(path, READABLE)
    return known is not None and known.name == "csv"


def column_kinds(path: Path) -> list[tuple[str, str]]:
    """Name and kind of the columns of a file, as `arrow.kinds_of` has them.

    Nothing but the schema is read, except where it does not tell: the text of .h5ad, which may be
    dates, and CSV, whose cells are looked at. The kind of a column of CSV is that of most of
    its cells, and coarse on purpose: it does not tell whole numbers from decimals, flags or a
    column without values. A kind is for whoever may see the data, and is not part of a model.
    """
    with reader_of(path) as reader:
        return detect(path).kinds if is_csv(path) else kinds_of(reader.schema())


def detect(path: Path) -> Detected:
    """How a CSV file is written, and what its columns are: the dialect that reads most of it."""
    with reader_of(path) as plain:
        encoding = _encoding(plain)
    with reader_of(path, replace(PLAIN, encoding=encoding)) as reader:
        header, delimiter = reader.header
        names = [name for name in header if name]
        check_columns(names, [])
        reader.check_header(names)
        start = replace(
            PLAIN,
            encoding=None if encoding == "utf-8" else encoding,
            delimiter=None if delimiter == "," else delimiter,
        )
        batches = islice(reader.texts(names), SAMPLE_BLOCKS + 1)
        sample = [pa.concat_arrays(parts) for parts in zip(*batches, strict=True)]
        dialect, kinds, questions = _guessed(dict(zip(names, sample, strict=True)), start)
        columns = tuple(Readings(name, kind, dialect) for name, kind in kinds.items())
        rest = reader.texts(list(kinds))
        for texts in islice(rest, LOOKED_AT + 1):
            for column, cells in zip(columns, texts, strict=True):
                column.read(cells)
        return Detected(dialect, columns, questions, whole=next(rest, None) is None)


def _encoding(reader: CsvReader) -> str:
    """UTF-8 if the first blocks are, else what most programs of Windows write."""
    if reader.encoding != "utf-8":
        return reader.encoding
    for encoding in ("utf-8", "windows-1252"):
        decoder = codecs.getincrementaldecoder(encoding)()
        with suppress(UnicodeDecodeError), reader.bytes() as file:
            for _ in range(LOOKED_AT):
                decoder.decode(file.read(2**20))
            return encoding
    return "latin-1"  # which every byte is


def _guessed(
    cells: Mapping[str, pa.Array], start: Dialect
) -> tuple[Dialect, dict[str, CellKind], Questions]:
    """Dialect, kinds and questions from texts of columns."""
    marked = replace(start, missing=tuple(KNOWN_SIGNS))
    kinds, read, written = {}, Counter[Reading](), set[str]()
    for name, texts in cells.items():
        present = read_cells(texts, TEXT, marked)[0].drop_null()
        counts = readable(present, marked)
        kind, sign = max(counts, key=counts.__getitem__)  # a number where there are no cells
        kinds[name] = TEXT if 2 * counts[kind, sign] < len(present) else kind
        if kinds[name] != TEXT:
            read += Counter({way: n for way, n in counts.items() if way[0] == kind})
            written |= set(compute.unique(compute.utf8_trim(texts, BLANKS)).to_pylist())
    questions: Questions = {}
    signs = max(NUMBER_SIGNS, key=lambda signs: read[NUMBER, signs])
    if signs == (",", "") and read[NUMBER, signs] == read[NUMBER, (".", ",")]:  # only 1,234
        signs, questions["decimal"] = (".", ""), ('","', '"." beside thousands = ","')
    # every form reads the cells of ISO too
    more = {form: read[DATE, form] - read[DATE, ISO] for form in DATE_FORMS}
    forms = [form for form, cells_of in more.items() if cells_of > 0]
    for day_first, month_first in (pair for pair in RIVALS.items() if {*pair} <= {*forms}):
        both = more[day_first], more[month_first]
        if both[0] == both[1]:
            questions["dates"] = (*questions.get("dates", ()), day_first, month_first)
        forms = [
            form for form in forms if form not in (day_first, month_first) or more[form] > min(both)
        ]
    dialect = replace(
        start,
        decimal=signs[0],
        thousands=signs[1],
        dates=tuple(forms) or PLAIN.dates,
        missing=tuple(sorted(KNOWN_SIGNS & written)),
    )
    return dialect, kinds, questions
