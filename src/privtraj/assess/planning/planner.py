"""The forecast before a single unit of privacy is spent.

Nothing is known about the data yet but their public shape, so `plan` runs the fit itself on public
stand-ins of that shape, several times, and says what came out: over epsilon and, where it is too
little, what would help. Forecasts are kept from one run to the next, in one
small JSON file for each question: they hold nothing but it, which is public, and what came out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from privtraj.assess.planning.forecast import Forecast
from privtraj.assess.planning.mixed import MixedForecast, outlook
from privtraj.assess.planning.question import LARGEST_FEATURES, LARGEST_TIMES, STAND_INS, Question
from privtraj.base import __version__, files
from privtraj.base.errors import Arg, InputError, is_whole
from privtraj.columns.axes import Axes
from privtraj.columns.declared import declared_columns
from privtraj.columns.kinds import Category, Column, Number
from privtraj.privacy.events import Adjacency, check_budget, check_hides_counts

FORMAT = 3  # of the kept files


def plan(
    people: int,
    *,
    features: int | None = None,
    columns: Any = None,
    times: int | None = None,
    epsilon: float = 1.0,
    delta: float = 1e-5,
    adjacency: Adjacency = "add-remove",
    measure: Literal["auto", "gradients", "counts", "marginals"] = "auto",
    public_counts: bool = False,
    records_per_person: int = 1,
    keep: bool = True,
    progress: Callable[[int, int], None] | None = None,
    **settings: Any,
) -> Forecast | MixedForecast:
    """What quality to expect of a fit, by simulation on public stand-in data.

    people: how many there are, at all times together; a round number will do.
    features: how many columns of numbers there are, beside those of `columns`.
    columns: other columns, as `Snapshots.from_table` takes them. Where some are categories, or may
        be missing, nothing is simulated, and the plan says how the fit will measure, and why.
    times: if all records are at so many times, such as the days of an experiment; by default they
        are at any time.
    public_counts: True if the number of people in each time bin will be public knowledge, with
        "replace-one" only.  The other arguments are those of `TrajectorySynthesizer` and
    `Snapshots`, and `settings` are its further ones, such as `cells`.
    keep: use a forecast that was made before, and keep this one, in the user's cache.

    No data are read and no budget is spent. Whatever is asked should be public: a number of people
    that is itself a secret should be rounded first.
    """
    check_budget(epsilon, delta)
    if public_counts:
        check_hides_counts(adjacency)
    declared = _declared(features, columns)
    question = Question(
        _whole("people", people, 2, 10**12),
        None if times is None else _whole("times", times, 2, LARGEST_TIMES),
        _whole("features", len(declared), 1, LARGEST_FEATURES),
        float(epsilon),
        float(delta),
        adjacency,
        measure,
        bool(public_counts),
        _whole("records_per_person", records_per_person, 1, LARGEST_TIMES),
        tuple(sorted(settings.items())),
    )
    if Axes.of(declared).mixed:
        _check(question)
        return outlook(question, declared)
    kept = _kept(question) if keep else None
    if kept is not None:
        return kept
    _check(question)
    from privtraj.assess.planning.trials import simulated  # heavy, and not needed for what was kept

    made = simulated(question, progress)
    if keep:
        _keep(made)
    return made


forecast = plan  # the same call, by the name of what it returns


def file_of(question: Question) -> Path:
    """Where the answer is kept, by every part of the question and by what made the answer."""
    made_by = {"format": FORMAT, "version": __version__, "stand-ins": STAND_INS}
    whole = {**made_by, "question": asdict(question)}
    key = hashlib.sha256(json.dumps(whole, sort_keys=True, default=float).encode()).hexdigest()
    return files.cache_folder("forecasts") / f"{key[:32]}.json"


def _kept(question: Question) -> Forecast | None:
    """What was kept; None if there is nothing that can be read."""
    try:
        kept = Forecast.from_dict(json.loads(file_of(question).read_text("utf-8")))
    except (OSError, RuntimeError, KeyError, TypeError, ValueError, AttributeError):
        return None  # there is none, or no home, or it is damaged
    return kept if kept.question == question else None


def _keep(forecast: Forecast) -> None:
    """Keep it for the next time, if there is a place for it."""
    try:
        path = file_of(forecast.question)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        text = json.dumps(forecast.to_dict(), allow_nan=False, default=float)
        files.write_text(f"{text}\n", path, force=True)
    except (OSError, RuntimeError, InputError):
        return


def _declared(features: Any, columns: Any) -> tuple[Column, ...]:
    """So many numbers, and the columns."""
    if features is None and columns is None:
        raise InputError("say what columns there are: ", Arg("features"), " or ", Arg("columns"))
    least = 1 if columns is None else 0
    count = 0 if features is None else _whole("features", features, least, LARGEST_FEATURES)
    numbers = tuple(Number(0.0, 1.0, f"number {k + 1}") for k in range(count))
    if columns is None:
        return numbers
    told = all(isinstance(column, Number | Category) for column in columns)
    return (*numbers, *(columns if told else declared_columns(None, None, columns=columns)))


def _whole(name: str, value: Any, low: int, high: int) -> int:
    if not (is_whole(value) and low <= value <= high):
        raise InputError(Arg(name), f" must be a whole number from {low} to {high}")
    return int(value)


def _check(question: Question) -> None:
    times = question.times or 1
    if question.people < times:
        raise InputError(
            Arg("people"),
            f" is {question.people} and ",
            Arg("times"),
            f" is {times}: a forecast needs at least one person per time",
        )
    if question.records_per_person > (question.times or LARGEST_TIMES):
        raise InputError(
            Arg("records_per_person"),
            " must not exceed ",
            Arg("times"),
            ": a person has one per time",
        )
    try:
        synthesizer = question.synthesizer()
    except TypeError:
        raise InputError(
            f"there is no such setting among {', '.join(dict(question.settings))}: use those of "
            "TrajectorySynthesizer"
        ) from None
    synthesizer.check()
