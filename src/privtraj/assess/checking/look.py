"""A steward's own look at a table against what is declared of it. Never for release.

It reads raw records, for whoever may see them, and nothing that it finds is private. So it stands
apart: fits, models, certificates and ledgers do not know it. One pass, in bounded memory.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from privtraj.assess.checking.findings import LEVELS, Finding, findings, share
from privtraj.assess.checking.intention import Intention, intention
from privtraj.assess.checking.reading import blocks, guessed, how_read, is_csv, unused
from privtraj.assess.checking.tallies import LevelTally, NumberTally, RangeTally, TableTally
from privtraj.base.errors import aligned
from privtraj.columns.declared import declared_columns
from privtraj.columns.precision import written_times
from privtraj.data.dialect import Dialect
from privtraj.data.public import Options, PublicInputs, declared_axis
from privtraj.domain.domain import Domain
from privtraj.synthesizer import TrajectorySynthesizer

NOTICE = "a look at the raw records, for their steward alone: never for release"

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
    findings: the gravest first.  intention: what a fit would do, if its budget is known.
    """

    read: tuple[str, ...]
    records: int
    people: int | None
    exact: bool
    columns: tuple[dict[str, Any], ...]
    findings: tuple[Finding, ...]
    intention: Intention | None

    @property
    def wrong(self) -> tuple[Finding, ...]:
        """Those that say that a range is plainly wrong."""
        return tuple(one for one in self.findings if one.level == "wrong")

    @property
    def fine(self) -> bool:
        """Whether a fit would take the table without a question."""
        return not any(one.level in ("refused", "wrong") for one in self.findings)

    def to_dict(self, typed: bool = False) -> dict[str, Any]:
        """For JSON; typed: in the words of the command line."""
        return {
            "notice": NOTICE,
            "fine": self.fine,
            "read": list(self.read),
            "records": self.records,
            "people": self.people,
            "exact": self.exact,
            "columns": [dict(column) for column in self.columns],
            "findings": [
                {"level": one.level, "column": one.column, "sentence": _said(one, typed)}
                for one in self.findings
            ],
            "fit": self.intention and self.intention.to_dict(),
            "privacy_spent": 0,
        }

    def text(self, typed: bool = False) -> str:
        """All of it; typed: in the words of the command line."""
        about = "" if self.exact else "about "
        whose = "" if self.people is None else f" of {about}{self.people} people"
        size = f"{self.records} records{whose}"
        parts = ["\n".join([NOTICE, size, *map(_item, self.read)]), _table(self.columns)]
        for level in LEVELS:
            said = [_said(one, typed) for one in self.findings if one.level == level]
            if said:
                parts.append("\n".join([_HEADINGS[level], *map(_item, said)]))
        if self.fine:
            parts.append("No range is plainly wrong.")
        if self.intention is not None:
            parts.append(str(self.intention))
        return "\n\n".join([*parts, "Nothing was spent, and nothing was written."])

    def __str__(self) -> str:
        return self.text()


def check(
    source: Any,
    *,
    time: str,
    query: str | None = None,
    row_by_row: bool = False,
    features: Sequence[str] | None = None,
    bounds: Any = None,
    columns: Any = None,
    time_range: Any = None,
    bins: Any = None,
    person: str | None = None,
    one_per_person: str = "error",
    records_per_person: int = 1,
    one_per_bin: bool = True,
    missing: str = "refuse",
    domain: Any = None,
    csv: Any = None,
    ranges_only: bool = False,
    synthesizer: TrajectorySynthesizer | None = None,
) -> TableCheck:
    """Look at a table before a fit: what lies outside the declared ranges, what a fit would refuse.

    The arguments are those of `Snapshots.from_table`. synthesizer: says what a fit would do, and
    has the public numbers of people, if there are any.  ranges_only: spend no time on how the file
    seems to be written and what other columns it has.

    The result is about raw records: it is for their steward alone, and never for release. It says
    that a range is wrong, not what it should be: ranges are public knowledge or none at all.
    """
    declared = declared_columns(bounds, features, columns=columns)
    has_person = person is not None
    options = Options(one_per_person, records_per_person, one_per_bin, missing, None, has_person)
    public = PublicInputs(declared, declared_axis(bins, time_range), time, options)
    public.check_roles(person)
    where = None if domain is None else Domain.read(domain).of_features(public.names)
    planned = None if synthesizer is None else intention(synthesizer, public, where)
    dialect = Dialect.of(csv)
    tally = TableTally(public, person, where, dialect)
    for block in blocks(source, query, public, person, dialect, row_by_row):
        tally.add(block)
    used = [time, *(column.name for column in public.asked), *([person] if person else [])]
    guess = None if ranges_only else guessed(source)
    others = {} if ranges_only else unused(source, query, used, guess)
    counts = None if synthesizer is None else synthesizer.public_counts
    return TableCheck(
        () if ranges_only else tuple(how_read(source, query, dialect, guess)),
        tally.records,
        None if tally.people is None else tally.people.people,
        tally.exact,
        tuple(_columns(tally)),
        findings(tally, others, is_csv(source), counts),
        planned,
    )


# Words ----------------------------------------------------------------------------------------


def _columns(tally: TableTally) -> list[dict[str, Any]]:
    """The counts of each column, for JSON."""
    public = tally.public
    first, last = (str(t) for t in written_times(public.axis.range, public.axis.datetime))
    time = {"name": public.time_name, "declared": f"{public.time_name} from {first} to {last}"}
    rows = [{**time, **_counts(tally.time, tally.records), "empty": _empty(tally.time)}]
    for column in public.asked:
        counts = _counts(tally.columns[column.name], tally.records)
        rows.append({"name": column.name, "declared": str(column), **counts})
    return rows


def _counts(tally: RangeTally | LevelTally, records: int) -> dict[str, Any]:
    if isinstance(tally, LevelTally):
        return {
            "records": records,
            "known": tally.known,
            "missing": tally.missing,
            "undeclared": tally.undeclared,
            "misspelt": tally.misspelt,
        }
    broken = {"broken": tally.broken} if isinstance(tally, NumberTally) else {}
    return {
        "records": records,
        "known": tally.known,
        "missing": tally.missing,
        "unreadable": tally.unreadable,
        "infinite": tally.infinite,
        "below": tally.below,
        "above": tally.above,
        "at_low": tally.at_low,
        "at_high": tally.at_high,
        **broken,
    }


def _empty(tally: RangeTally) -> int:
    """Times of interest without a record."""
    return int((tally.parts == 0).sum())


def _table(columns: Sequence[dict[str, Any]]) -> str:
    heads = ("", "missing", "unreadable", "below", "above", "at a bound", "not declared")
    count = len(heads) if any("undeclared" in column for column in columns) else len(heads) - 1
    rows = [heads[:count], *(_row(column)[:count] for column in columns)]
    return "\n".join(aligned(rows, right=range(1, count)))


def _row(column: dict[str, Any]) -> tuple[str, ...]:
    known, records = column["known"], column["records"]
    first = column["declared"], share(column["missing"], records)
    if "undeclared" in column:
        return (*first, "", "", "", "", share(column["undeclared"], known))
    at = column["at_low"] + column["at_high"]
    ranges = (share(many, known) for many in (column["below"], column["above"], at))
    return (*first, share(column["unreadable"], records), *ranges, "")


def _said(finding: Finding, typed: bool) -> str:
    return finding.typed() if typed else str(finding)


def _item(sentence: str) -> str:
    lines = textwrap.wrap(sentence, _WIDTH - 4, break_on_hyphens=False)
    return "  - " + "\n    ".join(lines)
