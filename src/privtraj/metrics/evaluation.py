"""A model against raw data: every score with its floor and ceiling. Never for release."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.base.arrays import Floats, Ints
from privtraj.base.errors import InputError, about
from privtraj.base.space import as_user_times, written_times
from privtraj.columns.kinds import Axes
from privtraj.metrics import records as raw
from privtraj.metrics.columns import (
    ColumnScores,
    column_scores,
    numbers_alone,
    one_hot,
    unit_points,
)
from privtraj.metrics.movement import Ground, ground
from privtraj.metrics.people import Worth, worth, worth_interval
from privtraj.metrics.records import Memorisation, Records
from privtraj.metrics.table import Score, cloud_scores, layout, path_scores, uniform_like

if TYPE_CHECKING:
    from privtraj.model.model import TrajectoryModel

NOTICE = "compares with raw data: not for release"

# Set by hand, so that scores over few people are not read as if they meant something.
LEAST = 8  # people at a time, in the reference and in what the floor is made of
LEAST_PATHS = 20  # people who were seen at all times of a path, on each side
PEOPLE = 1000  # synthetic ones: as many as exact transport compares
_READINGS = 5  # times at which people near a time of the model are read

# Percent of the time after which these are there, about: scores of clouds, worth, scores of paths.
_SCORED, _VALUED, _WALKED = 45, 85, 98

_FRESH = "other real people, from the hold-out"
_HALF = "a random half of the people, against the other half"


@dataclass(frozen=True)
class Evaluation:
    """What `evaluate` found; `str()` shows it as a table, `to_dict()` is the whole of it."""

    scores: tuple[Score, ...]
    worth: Worth
    worth_floor: float
    worth_ceiling: float
    memorisation: Memorisation
    settings: dict[str, Any]
    notes: tuple[str, ...] = ()
    path_scores: tuple[Score, ...] = ()
    columns: ColumnScores | None = None
    ground: Ground | None = None

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, None for what is not a number."""
        limits = {"floor": self.worth_floor, "ceiling": self.worth_ceiling}
        names = ("scores", "memorisation", "path_scores", "columns", "ground", "notes")
        found = {name: getattr(self, name) for name in names}
        worth = {**asdict(self.worth), **limits}
        return _plain({"notice": NOTICE, **self.settings, "worth": worth, **found})

    def __str__(self) -> str:
        s = self.settings
        limits = (self.worth.people, self.worth_floor, self.worth_ceiling)
        worth = Score("worth", "worth (people per time)", *limits, "higher")
        heading = (
            f"{s['synthetic_people']} synthetic people against {s['records']} records of "
            f"{s['people']} people; means over {len(s['times'])} times, in shares of the box"
        )
        parts = [NOTICE, heading, layout([*self.scores, worth])]
        if self.columns is not None:
            parts.append(str(self.columns))
        if self.path_scores:
            head = f"Whole paths at {len(s['path_times'])} times"
            parts.append(f"{head}\n{layout(self.path_scores)}")
        parts.append("\n".join(self._sentences()))
        return "\n\n".join(parts)

    def _sentences(self) -> list[str]:
        w = self.worth
        coupled = fitted = ""
        if self.path_scores:
            coupled = "; for path W2 and movement, true marginals coupled at random"
        if self.settings["floor"] != _FRESH:
            fitted = " If these people were fitted it is too high, by their luck: give a hold-out."
        lines = [
            f"Floor: {self.settings['floor']}. "
            f"Ceiling: people spread uniformly over the box{coupled}.",
            f"Worth {about(w.people)}{' or more' * (w.people >= w.most)} real people per time "
            f"({about(w.low)} to {about(w.high)}{' or more' * (w.high >= w.most)} in nine cases of "
            "ten): as far from the population as the raw records of so many. That is about "
            f"positions, not about shares of categories, correlations or paths.{fitted}",
        ]
        copies = self.memorisation
        median = f"median distance {copies.ratio:.3g} times that of other real people; "
        if math.isnan(copies.ratio):
            median = "most real people have a twin, so the median distance says nothing; "
        lines.append(
            f"Nearest real records: {median}{copies.share_close:.1%} are as close as the "
            f"closest {copies.share_expected:.1%} of other real people."
        )
        if self.ground is not None:
            lines.append(str(self.ground))
        if self.columns is not None:
            similar = self.columns.summary
            lines.append(
                f"Similarity as SDMetrics counts it: columns {similar['column_similarity']:.3f}, "
                f"pairs {similar['pair_similarity']:.3f}."
            )
        return lines


def evaluate(
    model: TrajectoryModel,
    table: Any,
    *,
    holdout: Any = None,
    person: str | None = None,
    n: int = PEOPLE,
    seed: int = 0,
    csv: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Compare n synthetic people with the records of a table; the result is not for release.

    table, holdout: files or tables with the model's columns; the hold-out holds other people, who
    were not in the fit. Without it, half of the table's people stand in for it, and the other half
    is what everything is compared with.  person: column that says whose record it is, for scores of
    whole paths.  csv: how CSV files are written, as `Snapshots.from_table`
    has it.  Everything is in shares of the model's box. The same seed gives the same result.
    """

    def within(start: int, stop: int) -> Callable[[float], None]:
        """Tells the percentage of the whole, from the share of a part."""
        if progress is None:
            return lambda share: None
        return lambda share: progress(round(start + share * (stop - start)), 100)

    columns, axes = model.columns, Axes.of(model.columns)
    records, reference, fresh = _sides(table, holdout, model, person, seed, csv)
    kept = np.flatnonzero(np.minimum(reference.counts(), fresh.counts()) >= LEAST)
    if len(kept) == 0:
        raise InputError(
            f"no time of the table has {LEAST} people to compare with and {LEAST} for the floor: "
            "give more records"
        )
    values = _readings(model, reference, n, seed)
    # everybody is read, for all times, at one of the quantiles
    drawn = values[np.arange(n), :, np.random.default_rng(seed).permutation(n) % _READINGS]
    real, others = ([side.clouds()[i] for i in kept] for side in (reference, fresh))
    sides = ([drawn[:, i] for i in kept], real, others)
    within(0, 1)(1)
    scores = cloud_scores(
        *sides[:2], fresh=others, columns=columns, seed=seed, progress=within(1, _SCORED)
    )
    found = _worth(sides, axes, columns, seed)
    within(0, _VALUED)(1)
    paths: dict[str, Any] = {}
    path_times = kept[:0]
    if person is not None:
        part = within(_VALUED, _WALKED)
        paths, path_times = _path_results(drawn, model, reference, fresh, seed, part)
    within(0, 100)(1)
    when = written_times(model.numeric_times, model.datetime)
    times = [str(when[i]) for i in kept]
    missed = len(when) - len(kept)
    notes = {
        "distances, grids and worth are those of the numbers alone": (
            axes.mixed and axes.numbers.any()
        ),
        f"{records.incomplete} records with missing values are left out": records.incomplete,
        f"{missed} of {len(when)} times have too few people and are left out": missed,
        **dict.fromkeys(paths.pop("notes", ()), True),
    }
    return Evaluation(
        tuple(scores),
        *found,
        raw.memorisation(*(_encoded(side, columns) for side in sides)),
        {
            "records": len(records.bins),
            "people": records.n_people,
            "synthetic_people": n,
            "seed": seed,
            "floor": _HALF if holdout is None else _FRESH,
            "times": times,
            "path_times": [str(when[i]) for i in path_times],
            "private": model.certificate.private,
        },
        notes=tuple(note for note, so in notes.items() if so),
        columns=column_scores(*sides, columns, times) if axes.mixed else None,
        **paths,
    )


def _sides(
    table: Any, holdout: Any, model: TrajectoryModel, person: str | None, seed: int, csv: Any
) -> tuple[Records, Records, Records]:
    """All records of the table, the reference, and the real people that make the floor."""
    sources = (table,) if holdout is None else (table, holdout)
    read = [raw.read_records(source, model, person, csv) for source in sources]
    records, fresh = read[0], read[-1]
    if min(len(each.bins) for each in read) < 2:
        raise InputError(
            "the table has fewer than two complete records: there is nothing to compare"
        )
    if holdout is None:
        if records.n_people < 2:
            raise InputError(
                "all records of the table belong to one person: there is nothing to compare"
            )
        fresh, reference = records.halves(np.random.default_rng(seed))
        return records, reference, fresh
    if both := raw.shared_people(records, fresh):
        raise InputError(
            f"{both} people are in the table and in the hold-out: a hold-out must hold other people"
        )
    return records, records, fresh


def _readings(model: TrajectoryModel, reference: Records, n: int, seed: int) -> Floats:
    """Synthetic people (n, T, J, d), in the unit cube, near the times of the model, when the real
    people are seen.

    The records nearest to a time have times of their own: J quantiles of these are read. Where all
    records are at the model's times, so are they. Everybody is there all the time: who comes and
    goes does not change the marginals.
    """
    model = model if model.growth is None else model.with_growth(None)
    shares = (np.arange(_READINGS) + 0.5) / _READINGS
    own = [reference.moments[reference.bins == i] for i in range(reference.times)]
    when = [
        np.quantile(moments, shares) if len(moments) else np.full(_READINGS, time)
        for moments, time in zip(own, model.numeric_times, strict=True)
    ]
    at = np.concatenate(when)
    values = model.sample(n, times=as_user_times(at, model.datetime), seed=seed).values
    return unit_points(values.reshape(n, len(when), _READINGS, -1), model.columns)


def _worth(
    sides: Sequence[list[Floats]], axes: Axes, columns: Any, seed: int
) -> tuple[Worth, float, float]:
    """Worth of the synthetic people with its interval, of fresh real people, of uniform ones.

    By numbers, or by categories where there is no number. All real people together stand for the
    population; so many fresh ones are worth their number.
    """
    synthetic, real, fresh = (
        [numbers_alone(cloud, columns) for cloud in side]
        if axes.numbers.any()
        else _encoded(side, columns)
        for side in sides
    )
    everybody = [np.concatenate(both) for both in zip(real, fresh, strict=True)]
    rng = np.random.default_rng(seed)
    spread = [uniform_like(x, None, rng) for x in synthetic]
    floor = float(np.median([len(x) for x in fresh]))
    ours = worth_interval(synthetic, everybody, seed=seed)
    return ours, floor, worth(spread, everybody, seed=seed)


def _encoded(clouds: list[Floats], columns: Any) -> list[Floats]:
    """Points whose distances count categories too."""
    return [one_hot(cloud, columns) for cloud in clouds] if Axes.of(columns).mixed else clouds


def _path_results(
    drawn: Floats,
    model: TrajectoryModel,
    reference: Records,
    fresh: Records,
    seed: int,
    progress: Callable[[float], None],
) -> tuple[dict[str, Any], Ints]:
    """Fields of an `Evaluation`, and the times of paths: all, less those whose loss makes the most
    people complete, until there are enough people on both sides."""
    sides, left = [reference.rows() >= 0, fresh.rows() >= 0], list(range(reference.times))

    def complete(chosen: list[int]) -> int:
        return min(int(seen[:, chosen].all(axis=1).sum()) for seen in sides)

    while len(left) > 1 and complete(left) < LEAST_PATHS:
        left.remove(max(left, key=lambda i: complete([j for j in left if j != i])))
    times = np.array(left, dtype=np.int64)
    if len(times) < 2:
        few = f"fewer than {LEAST_PATHS} people on a side have several times"
        return {"notes": (f"no scores of paths: {few}",)}, times[:0]
    columns, when = model.columns, model.numeric_times[times]
    synthetic, real, others = drawn[:, times], reference.paths(times), fresh.paths(times)
    how: dict[str, Any] = {"columns": columns, "seed": seed, "progress": progress}
    fields = {
        "path_scores": tuple(path_scores(synthetic, real, fresh=others, times=when, **how)),
        "ground": ground(synthetic, real, columns, when, model.time_name, model.datetime),
    }
    return fields, times


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return _plain(value.to_dict())
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
