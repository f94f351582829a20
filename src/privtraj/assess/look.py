"""A steward's own look at a table against what is declared of it. Never for release.

It reads raw records, for whoever may see them, and nothing that it finds is private. So it stands
apart: fits, models, certificates and ledgers do not know it. One pass, in bounded memory: records
come as a fit reads them, so many at a time.
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privtraj.assess.common import LEVELS, Finding
from privtraj.assess.findings import findings, share
from privtraj.assess.tally import TableTally
from privtraj.base.errors import InputError, about, aligned
from privtraj.base.formats import READABLE, find_format
from privtraj.base.space import written_times
from privtraj.columns.kinds import Category
from privtraj.data import arrow, detection, sql, tables
from privtraj.data.detection import Detected
from privtraj.data.dialect import TEXT, CellKind, Dialect
from privtraj.data.public import PublicInputs, declaring
from privtraj.data.records import RangeCounts

if TYPE_CHECKING:
    import pyarrow as pa

NOTICE = "a look at the raw records, for their steward alone: never for release"
HEAD = 100  # rows of a table in memory that tell the kind of a column that nobody asked for
_HEADINGS = {
    "refused": "Refused: fit stops at these",
    "wrong": "Plainly wrong: fit stops before these cost anything, unless told to go on",
    "doubtful": "Doubtful: look before the budget is gone",
    "note": "Notes",
}
_WIDTH = 96


@dataclass(frozen=True)
class TableCheck:
    """What `check` saw; `str()` shows it, `to_dict()` is the whole of it. Never for release.

    read: how the cells were read.  columns: of each declared one, the time first, its counts.
    findings: the gravest first.
    """

    read: tuple[str, ...]
    records: int
    people: int | None
    exact: bool
    columns: tuple[dict[str, Any], ...]
    findings: tuple[Finding, ...]

    @property
    def wrong(self) -> tuple[Finding, ...]:
        """Those that say that a range is plainly wrong."""
        return tuple(one for one in self.findings if one.verdict == "wrong")

    @property
    def fine(self) -> bool:
        """Whether a fit would take the table without a question."""
        return not any(one.verdict in ("refused", "wrong") for one in self.findings)

    def to_dict(self, typed: bool = False) -> dict[str, Any]:
        """For JSON; typed: in the words of the command line."""
        rows = [
            {"level": f.verdict, "column": f.name, "sentence": f.typed() if typed else f.sentence}
            for f in self.findings
        ]
        return {
            "notice": NOTICE,
            "fine": self.fine,
            "read": list(self.read),
            "records": self.records,
            "people": self.people,
            "exact": self.exact,
            "columns": [dict(column) for column in self.columns],
            "findings": rows,
            "privacy_spent": 0,
        }

    def text(self, typed: bool = False) -> str:
        """All of it; typed: in the words of the command line."""
        whose = "" if self.people is None else f" of {self.people} people"
        if self.people is not None and not self.exact:  # counted by hashes, which err by a little
            whose = f" of about {about(min(self.people, self.records))} people"
        size = f"{self.records} records{whose}"
        parts = ["\n".join([NOTICE, size, *map(_item, self.read)]), _table(self.columns)]
        for level in LEVELS:
            here = [one for one in self.findings if one.verdict == level]
            if here:
                sentences = [one.typed() if typed else one.sentence for one in here]
                parts.append("\n".join([_HEADINGS[level], *map(_item, sentences)]))
        if self.fine:
            parts.append("No range is plainly wrong.")
        return "\n\n".join([*parts, "Nothing was spent, and nothing was written."])

    def __str__(self) -> str:
        return self.text()


@declaring
def check(
    source: Any,
    *,
    query: str | None = None,
    row_by_row: bool = False,
    counted: RangeCounts | None = None,
    public_counts: Sequence[float] | None = None,
    constant: Mapping[str, str] | None = None,
    **declared: Any,
) -> TableCheck:
    """Look at a table before a fit: what lies outside the declared ranges, what a fit would refuse.

    The arguments are those of `Snapshots.from_table`. public_counts: people in each bin, if these
    are public.  constant: as a recipe has it.  counted: `range_counts` of snapshots of the table,
    by which alone ranges are looked at, and nothing else is; the records are read once more only to
    find those outside a domain.

    The result is about raw records: it is for their steward alone, and never for release. It says
    that a range is wrong, not what it should be: ranges are public knowledge or none at all.
    """
    public = PublicInputs.declared(**declared)
    dialect, person, where = public.dialect, public.person, public.domain
    tally = TableTally(public, person, where, dialect)
    if counted is not None and where is None:
        tally.take(counted)
    else:
        for block in _blocks(source, query, tally, dialect, row_by_row):
            tally.add(block)
    files, guess, read, others = _files(source), None, [], {}
    is_csv = bool(files) and detection.is_csv(files[0])
    if counted is None:
        try:
            guess = detection.detect(files[0]) if is_csv else None
        except InputError:  # of a file that tells too little
            guess = None
        names = [column.name for column in public.asked]
        used = {public.time_name, person, *names, *dict(constant or {})}
        kinds = dict(_kinds(source, query)) if guess is None else dict(guess.kinds)
        others = {k: v for k, v in kinds.items() if not {k, arrow.without_unit(k)} & used}
        read = how_read(source, query, dialect, guess)
    return TableCheck(
        tuple(read),
        tally.records,
        None if tally.people is None else tally.people.more_than(0),
        tally.exact,
        tuple(_counts(tally)),
        findings(tally, others, is_csv, public_counts),
    )


# Records, and how they were read --------------------------------------------------------------


def _blocks(
    source: Any, query: str | None, tally: TableTally, dialect: Dialect, row_by_row: bool
) -> Iterator[pa.Table]:
    """The columns that a fit reads, of up to `sql.BATCH` records at a time.

    What a fit leaves where it is comes by pieces. Cells of CSV files come as text, so that those
    that cannot be read are counted, rather than the end of all reading.
    """
    import pyarrow as pa

    kinds = {tally.public.time_name: TEXT}
    for column in tally.public.asked:
        kinds[column.name] = CellKind.of(column) if isinstance(column, Category) else TEXT
    if tally.person is not None:
        kinds[tally.person] = TEXT
    names = list(kinds)
    remote = sql.remote_table(source, query, names, kinds, dialect, row_by_row=row_by_row)
    if remote is None:
        table = tables.read_columns(source, names, kinds, dialect)
        for start in range(0, len(table), sql.BATCH):
            yield table.slice(start, sql.BATCH)
    else:
        for batch in remote.batches():
            yield pa.Table.from_batches([batch])


def how_read(
    source: Any, query: str | None, dialect: Dialect, guess: Detected | None = None
) -> list[str]:
    """How the cells were read, in words, and how CSV seems to be written if that is otherwise."""
    if query is not None:
        return [f"read from a database ({str(source).partition('://')[0]}), by its query"]
    files = _files(source)
    if not files:
        return [f"read from a table in memory ({type(source).__name__})"]
    many = "" if len(files) == 1 else f"{len(files)} files, the first of them: "
    if not detection.is_csv(files[0]):
        known = find_format(files[0], READABLE)
        return [f"read from {many}{'' if known is None else known.name}"]
    with tables.reader_of(files[0], dialect) as reader:
        used = replace(dialect, delimiter=reader.header[1], encoding=reader.encoding)
    lines = [f"read from {many}CSV with {used}"]
    seems = used if guess is None else guess.dialect
    words = ("decimal", "thousands", "dates")
    if any(getattr(seems, word) != getattr(used, word) for word in words):
        lines.append(f"it seems to have {seems}, which was not declared")
    return lines


def _files(source: Any) -> list[Path]:
    """The files that hold it, if any do."""
    if not isinstance(source, str | os.PathLike) or "://" in str(source):
        return []
    return sql.files_of(Path(source))


def _kinds(source: Any, query: str | None) -> list[tuple[str, str]]:
    """Names and kinds of all columns, where they are known without reading all; else none."""
    import pyarrow as pa

    ibis = sys.modules.get("ibis")
    try:
        if isinstance(source, str | os.PathLike):
            return sql.columns_of(str(source) if query is not None else Path(source), query)
        if ibis is not None and isinstance(source, ibis.Table):
            return arrow.kinds_of(source.schema().to_pyarrow())
        if isinstance(source, pa.Table | pa.RecordBatch):
            return arrow.kinds_of(source.schema)
        in_memory = isinstance(source, Mapping) or hasattr(source, "head")
        if tables.is_anndata(source) or not in_memory:
            return []
        return [(name, _kind(source, name)) for name in arrow.object_names(source)]
    except InputError:  # a table that says nothing of them can still be read
        return []


def _kind(source: Any, name: str) -> str:
    """Of a column in memory, by its first rows."""
    if isinstance(source, Mapping):
        source = {key: cells[:HEAD] for key, cells in source.items() if str(key) == name}
    else:
        source = source.head(HEAD)
    try:
        return arrow.kinds_of(arrow.read_object(source, [name]).schema)[0][1]
    except InputError:
        return "mixed"


def _counts(tally: TableTally) -> Iterator[dict[str, Any]]:
    """Of the time and of each column, for JSON."""
    public, time = tally.public, tally.time
    first, last = (str(t) for t in written_times(public.axis.range, public.axis.datetime))
    counts = {name: many for name, many in time.counts.items() if name != "broken"}
    counts["empty"] = int((time.parts == 0).sum())  # times of interest without a record
    known = {"name": time.name, "declared": f"{time.name} from {first} to {last}"}
    yield {**known, "records": tally.records, **counts}
    for column in public.asked:
        known = {"name": column.name, "declared": str(column)}
        yield {**known, "records": tally.records, **tally.columns[column.name].counts}


def _table(columns: Sequence[dict[str, Any]]) -> str:
    heads = ("", "missing", "unreadable", "below", "above", "at a bound", "not declared")
    rows = [heads]
    for one in columns:
        known, records = one["known"], one["records"]
        cells = [one["declared"], share(one["missing"], records)]
        if "undeclared" in one:
            cells += ["", "", "", "", share(one["undeclared"], known)]
        else:
            counts = (one["below"], one["above"], one["at_low"] + one["at_high"])
            cells += [share(one["unreadable"], records), *(share(n, known) for n in counts), ""]
        rows.append(tuple(cells))
    count = len(heads) if any("undeclared" in one for one in columns) else len(heads) - 1
    return "\n".join(aligned([row[:count] for row in rows], right=range(1, count)))


def _item(sentence: str) -> str:
    lines = textwrap.wrap(sentence, _WIDTH - 4, break_on_hyphens=False)
    return "  - " + "\n    ".join(lines)
