"""What the user declares as public: columns, times, how many records of a person are kept, whose
they are and how a file is written. So a table is read, by a fit and by `privtraj check` alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from numbers import Integral
from typing import Any

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.base.errors import Arg, InputError, either, is_whole
from privtraj.base.space import TimeAxis, moment
from privtraj.columns.declared import declared_columns
from privtraj.columns.kinds import LONGEST_NAME, Column, LogNumber, of_tables
from privtraj.columns.precision import spread_times
from privtraj.data.dialect import DATE, NUMBER, PLAIN, TEXT, CellKind, Dialect
from privtraj.domain.domain import Domain
from privtraj.privacy.certificate import COMPARED

_TIMES, _RANGE = Arg("bins", option="bin_times"), Arg("time_range")

MOST_TIMES = 50_000  # of interest, as many as a model file holds
READ_AT = 25  # times, evenly spread, at which a model is read where nobody names any


@dataclass(frozen=True)
class PublicInputs:
    """All that is public about records: d columns, times, and how many of a person are kept.

    time_name, person: columns of a table, the time and whose a record is.  dialect: of CSV files.
    domain: where people can be at all. The others are explained at `Snapshots.from_arrays`.
    """

    columns: tuple[Column, ...]
    axis: TimeAxis
    time_name: str
    person: str | None = None
    one_per_person: str = "error"
    records_per_person: int = 1
    one_per_bin: bool = True
    missing: str = "refuse"
    seed: int | None = None
    domain: Domain | None = None
    same_person: str = "exact"
    dialect: Dialect = PLAIN

    @classmethod
    def declared(
        cls,
        *,
        time: str,
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
        seed: int | None = None,
        domain: Any = None,
        same_person: str = "exact",
        csv: Any = None,
        n_features: int | None = None,
    ) -> PublicInputs:
        """Of a table, as `Snapshots.from_table` explains them; of arrays, if d is known."""
        made = declared_columns(bounds, features, n_features, columns)
        axis, dialect = declared_axis(bins, time_range), Dialect.of(csv)
        kept = (one_per_person, records_per_person, one_per_bin, missing, seed)
        public = cls(made, axis, time, person, *kept, domain, same_person, dialect)
        if n_features is None and time in public.names:
            raise InputError(
                f"column '{time}' is the time and a feature: leave it out of ",
                Arg("features", option="feature"),
            )
        if n_features is None and person in (time, *public.names):
            raise InputError(
                f"column '{person}' is the person and also time or feature: use another"
            )
        return public

    def __post_init__(self) -> None:
        for word, known in (
            ("missing", ("refuse", "drop")),
            ("one_per_person", ("error", "random")),
            ("same_person", tuple(COMPARED)),
        ):
            if getattr(self, word) not in known:
                words = either([f"'{each}'" for each in known])
                raise InputError(Arg(word), f" must be {words}, not '{getattr(self, word)}'")
        most, at_random = self.records_per_person, self.one_per_person == "random"
        if not is_whole(most) or most < 1:
            raise InputError(Arg("records_per_person"), " must be a whole number of at least 1")
        if (most > 1 or at_random) and self.person is None:
            asked = Arg("one_per_person", "random") if at_random else Arg("records_per_person")
            raise InputError(asked, " needs ", Arg("person="), ", which says whose record it is")
        if most > 1 and at_random:
            raise InputError(
                Arg("one_per_person", "random"),
                " keeps one record and ",
                Arg("records_per_person"),
                " several: leave out one of them",
            )
        if any(len(str(name)) > LONGEST_NAME for name in (self.time_name, *self.names)):
            raise InputError(
                f"a column has a name of more than {LONGEST_NAME} letters, which no model keeps: "
                "rename it"
            )
        if self.domain is not None:
            where = Domain.read(self.domain).of_features(self.names)
            for column in self.asked:
                if column.name in (where.x, where.y) and isinstance(column, LogNumber):
                    raise InputError(
                        f"'{column.name}' is a place in the domain, so it cannot have a log scale"
                    )
            where.ground(self.names, np.array([column.domain for column in self.columns]))
            object.__setattr__(self, "domain", where)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the d features."""
        return tuple(column.name for column in self.columns)

    @property
    def asked(self) -> tuple[Column, ...]:
        """The columns that a table has: all but flags, which are made of them."""
        return of_tables(self.columns)

    @property
    def cell_kinds(self) -> dict[str, CellKind]:
        """What the cells of each column of a table are."""
        kinds = {self.time_name: DATE if self.axis.datetime else NUMBER}
        kinds |= {column.name: CellKind.of(column) for column in self.asked}
        return kinds if self.person is None else kinds | {self.person: TEXT}

    @property
    def one_each(self) -> bool:
        """Whether a second record of a person is refused."""
        return self.records_per_person == 1 and self.one_per_person == "error"

    @property
    def together(self) -> bool:
        """Whether records of one person may share a bin, or there are no bins."""
        apart = self.one_per_bin and self.axis.declared
        return self.records_per_person > 1 and not apart

    @property
    def most_records(self) -> int:
        """Records of one person that can be kept."""
        most = self.records_per_person
        return most if self.together else min(most, len(self.axis.times))


def declaring(function: Any) -> Any:
    """A function whose signature shows what `PublicInputs.declared` takes of its **declared."""
    shown = signature(function)
    own = dict(list(shown.parameters.items())[:-1])
    facts = signature(PublicInputs.declared).parameters
    of_tables = {"n_features"} | ({"time", "csv"} if "points" in own else set())
    more = [fact for name, fact in facts.items() if name not in own.keys() | of_tables]
    function.__signature__ = shown.replace(parameters=[*own.values(), *more])
    return function


def declared_axis(bins: Any, time_range: Any) -> TimeAxis:
    """Times of interest from their number and the range, or as listed; without any, the range."""
    if isinstance(bins, str | bool):
        raise InputError(Arg("bins"), " must be a number of times, or the list of them")
    if isinstance(time_range, str):
        raise InputError(
            _RANGE,
            " must be public (start, end): a range taken from the data would reveal "
            "its earliest and latest people",
        )
    ends = None if time_range is None else _moments(time_range, _RANGE)
    if ends is not None and (len(ends[0]) != 2 or not 0 < ends[0][1] - ends[0][0] < np.inf):
        raise InputError(_RANGE, " must be two times (start, end), start before end")
    listed = not (bins is None or isinstance(bins, Integral))
    what, times, dates = Arg("bins"), np.empty(0), False
    if listed:
        what, (times, dates) = _TIMES, _moments(bins, _TIMES)
    elif ends is None:
        raise InputError(
            _RANGE,
            " must be given as public (start, end), unless ",
            _TIMES,
            " lists all times: a range taken from the data would reveal its earliest and latest "
            "people",
        )
    count = len(times) if listed else READ_AT if bins is None else int(bins)
    if count < 2:
        raise InputError(
            what, f" {'lists' if listed else 'is'} {count}: trajectories need at least two times"
        )
    if count > MOST_TIMES:  # what a model file could not hold later
        raise InputError(what, f" are {count} times: a model has at most {MOST_TIMES} of interest")
    if not listed and ends is not None:
        (start, end), dates = ends
        times = spread_times(float(start), float(end), count, dates)
        return TimeAxis(times, dates, ends[0], declared=bins is not None)
    if not (np.diff(times) > 0).all() or np.isinf(times[-1] - times[0]):
        raise InputError(_TIMES, " must increase strictly: sort them and remove repeated times")
    if ends is None:
        return TimeAxis(times, dates, times[[0, -1]])
    if dates != ends[1]:
        raise InputError(_TIMES, " and ", _RANGE, " must both be numbers or both be dates")
    if times[0] < ends[0][0] or times[-1] > ends[0][1]:
        raise InputError(_TIMES, " reach outside ", _RANGE, ": widen it, or leave it out")
    return TimeAxis(times, dates, ends[0])


def _moments(values: Any, what: Arg) -> tuple[Floats, bool]:
    """Times (n,) as numbers, and whether they are dates."""
    try:
        pairs = [moment(value, what) for value in values]
    except TypeError:
        raise InputError(what, " must be a list of numbers or dates") from None
    kinds = {datetime for _, datetime in pairs}
    if len(kinds) > 1:
        raise InputError(what, " mixes numbers and dates: use one kind")
    return np.array([value for value, _ in pairs], dtype=np.float64), kinds == {True}
