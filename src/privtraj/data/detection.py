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
from collections.abc import Iterator, Mapping, Sequence
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
        if not isinstance(reader, CsvReader):
            return kinds_of(reader.schema())
    return detect(path).kinds


def detect(path: Path) -> Detected:
    """How a CSV file is written, and what its columns are."""
    with reader_of(path) as plain:
        encoding = _encoding(plain)
    with reader_of(path, replace(PLAIN, encoding=encoding)) as reader:
        header, delimiter = reader.header()
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
        _count(columns, islice(rest, LOOKED_AT + 1))
        return Detected(dialect, columns, questions, whole=next(rest, None) is None)


def _count(columns: Sequence[Readings], batches: Iterator[list[pa.Array]]) -> None:
    for texts in batches:
        for column, cells in zip(columns, texts, strict=True):
            column.read(cells)


def _encoding(reader: CsvReader) -> str:
    """UTF-8 if the first blocks are, else what most programs of Windows write."""
    if reader.encoding != "utf-8":
        return reader.encoding
    for encoding in ("utf-8", "windows-1252"):
        decoder = codecs.getincrementaldecoder(encoding)()
        try:
            with reader.bytes() as file:
                for _ in range(LOOKED_AT):
                    decoder.decode(file.read(2**20))
        except UnicodeDecodeError:
            continue
        return encoding
    return "latin-1"  # which every byte is


def _guessed(
    cells: Mapping[str, pa.Array], start: Dialect
) -> tuple[Dialect, dict[str, CellKind], Questions]:
    """Dialect, kinds and questions from texts of columns."""
    marked = replace(start, missing=tuple(KNOWN_SIGNS))
    present = {k: read_cells(texts, TEXT, marked)[0].drop_null() for k, texts in cells.items()}
    found = {name: readable(texts, marked) for name, texts in present.items()}
    kinds = {}  # that of most cells; numbers where there are none
    for name, texts in present.items():
        kind, sign = max(found[name], key=found[name].__getitem__)
        kinds[name] = TEXT if 2 * found[name][kind, sign] < len(texts) else kind
    total: Counter[Reading] = Counter()
    for name, counts in found.items():
        total += Counter({way: n for way, n in counts.items() if way[0] == kinds[name]})
    signs, signs_asked = _number_signs({sign: total[NUMBER, sign] for sign in NUMBER_SIGNS})
    forms, forms_asked = _date_forms({form: total[DATE, form] for form in (ISO, *DATE_FORMS)})
    written: set[str] = set()
    for name in (name for name, kind in kinds.items() if kind != TEXT):
        written |= set(compute.unique(compute.utf8_trim(cells[name], BLANKS)).to_pylist())
    dialect = replace(
        start,
        decimal=signs[0],
        thousands=signs[1],
        dates=forms or PLAIN.dates,
        missing=tuple(sorted(KNOWN_SIGNS & written)),
    )
    return dialect, kinds, signs_asked | forms_asked


def _number_signs(read: Mapping[Any, int]) -> tuple[tuple[str, str], Questions]:
    """Decimal and thousands that read most cells, the simplest first; and what is to be asked."""
    best = max(NUMBER_SIGNS, key=read.__getitem__)
    if best == (",", "") and read[best] == read[".", ","]:  # nothing but 1,234
        return (".", ""), {"decimal": ('","', '"." beside thousands = ","')}
    return best, {}


def _date_forms(read: Mapping[Any, int]) -> tuple[tuple[str, ...], Questions]:
    """Forms that read most cells of their sign, the likeliest first; and what is to be asked."""
    iso, (dots, *others) = read[ISO], DATE_FORMS
    forms = [dots] if read[dots] > iso else []
    asked: list[str] = []
    for day_first, month_first in (others[:2], others[2:4]):
        counts = read[day_first] - iso, read[month_first] - iso
        if max(counts) > 0 and counts[0] == counts[1]:
            asked += [day_first, month_first]
        elif max(counts) > 0:
            forms.append(day_first if counts[0] > counts[1] else month_first)
    forms += [form for form in others[4:] if read[form] > iso]
    questions = {"dates": tuple(asked)} if asked else {}
    return tuple(forms), questions
