"""How a CSV file seems to be written: guesses for its steward, who declares what is right.

Nothing here is part of a fit: guesses look at all cells, so they are for `privtraj init`, which
writes them to a configuration to be checked, and for `privtraj check`. What decides is which
settings read most cells, never one cell alone where others say otherwise. Where cells do not tell
(01/02/2019, or nothing but 1,234), there is no guess but a question. No value of the data is ever
shown: signs and codes for missing values are those of a public list.
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

import numpy as np
import pyarrow as pa
from pyarrow import compute

from privtraj.base.arrays import Floats
from privtraj.base.formats import READABLE, find_format
from privtraj.data.arrow import check_columns, unit_of
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
CODES = tuple(
    float(f"{sign}{digit * k}")
    for sign, first in (("-", 1), ("", 2))
    for k in range(first, 6)
    for digit in "987"
)
"""Numbers by which they do, such as -9, -99 and 999, where they stand apart: see `settings_of`."""
APART = 0.5  # of the range of all other values, from which on a code is none of them; by hand
SKEWED = 2.0  # skewness, that of an exponential distribution, beyond which a log scale is offered
MANY_MISSING = 0.02  # of cells, from which on a form says that a column may be missing; by hand
_ALIKE = 10  # values that tell whether a column has but one


def settings_of(values: Floats) -> dict[str, Any]:
    """What a number seems to need, by its values (n,), NaN where missing: `missing_codes`, which
    come more than once and stand apart from all others, a `scale` and its `offset`; or nothing but
    `constant`, where all that is left are the same."""
    values = values[np.isfinite(values)]
    rest = values[~np.isin(values, CODES)]
    if len(rest) < _ALIKE:
        return {}
    low, high = float(rest.min()), float(rest.max())
    found: dict[str, Any] = {}
    codes = [
        int(code)
        for code in CODES
        if np.count_nonzero(values == code) > 1
        and (code < 0 <= low or max(low - code, code - high) > APART * (high - low))
    ]
    if codes:
        found["missing_codes"] = codes
        values = values[~np.isin(values, codes)]
    if low == high == values.min() == values.max():
        return {**found, "constant": True}
    least = float(rest[rest > 0].min(initial=np.inf))
    if values.min() >= 0 and _skewness(values) > SKEWED:
        logs = np.log(values + (0.0 if low > 0 else least))
        if abs(_skewness(logs)) < _skewness(values) / 2:
            found |= {"scale": "log"} | ({} if low > 0 else {"offset": "<offset>"})
    return found


def _skewness(values: Floats) -> float:
    off = values - values.mean()
    spread = float(np.sqrt((off**2).mean()))
    return float((off**3).mean()) / spread**3 if spread > 0 else 0.0


Questions = dict[str, tuple[str, ...]]
"""Settings that cells do not tell, and what each may be."""


@dataclass(frozen=True)
class Detected:
    """What a CSV file seems to be.

    columns: how many cells of each are read, with the settings of `dialect`.
    questions: settings that the cells do not tell, and what they may be.
    whole: whether all rows were counted.
    seen: what `settings_of` says of each number, by some of its cells.
    """

    dialect: Dialect
    columns: tuple[Readings, ...]
    questions: Questions
    whole: bool
    seen: Mapping[str, dict[str, Any]]

    @property
    def forms(self) -> dict[str, dict[str, Any]]:
        """Settings of columns, where they have any, for the steward to keep or to remove."""
        made = {}
        for column in self.columns:
            own = {k: v for k, v in self.seen.get(column.name, {}).items() if k != "constant"}
            if column.missing > MANY_MISSING * column.cells or "missing_codes" in own:
                own = {"missing": True, **own}
            if own:
                made[column.name] = own
        return made

    @property
    def constant(self) -> list[str]:
        """Columns that seem to have one value."""
        return [name for name, own in self.seen.items() if "constant" in own]

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
        for name, own in self.forms.items():
            signs = {
                "missing": "some cells are missing: with missing = true nobody is left out",
                "missing_codes": "missing_codes stand apart from all other values: keep those that "
                "the code book says mean missing",
                "scale": "it is skewed: keep the log scale if ratios matter, else remove it",
            }
            asked += [f"'{name}': {said}" for word, said in signs.items() if word in own]
        asked += [f"'{name}' seems to have one value: {CONSTANT}" for name in self.constant]
        return [*asked, *(column.error().typed() + where for column in odd)]


CONSTANT = "declare it as a constant, which tables then have, and which costs nothing"


def is_csv(path: Path) -> bool:
    """Whether a file is one that has a dialect."""
    known = find_format(path, READABLE)
    return known is not None and known.name == "csv"


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
        seen = {}
        for name, cells in zip(names, sample, strict=True):
            if kinds[name] == NUMBER:
                values = read_cells(cells, NUMBER, dialect)[0]
                seen[name] = settings_of(values.to_numpy(zero_copy_only=False))
            elif kinds[name] == TEXT and len(cells) >= _ALIKE and len(cells.unique()) == 1:
                seen[name] = {"constant": True}
        return Detected(dialect, columns, questions, next(rest, None) is None, seen)


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
