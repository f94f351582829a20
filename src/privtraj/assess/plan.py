"""Before a fit: what a budget will buy. No record is asked.

Nothing is known about the data yet but their public shape, so `plan` runs the fit itself on public
stand-ins of that shape, several times, and says what came out, over epsilon. Of categories only the
measure and its noise can be said, as how well they come out depends on how they hang together.
`price` says what several records of a person cost.
"""

from __future__ import annotations

import inspect
import math
import textwrap
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.assess.common import LEAST_WORTH, STAND_INS, Estimate, kept
from privtraj.base.arrays import Floats
from privtraj.base.errors import Arg, InputError, about, aligned, is_whole, short
from privtraj.columns.declared import declared_columns
from privtraj.columns.kinds import Axes, Category, Column, Number
from privtraj.metrics.people import MOST_TOLD
from privtraj.privacy.accounting import bisect, delta_at, epsilon_at
from privtraj.privacy.certificate import LARGE_EPSILON, chance_right, shows, weaknesses
from privtraj.privacy.events import Adjacency, Opaque, Person, check_budget
from privtraj.privacy.ledger import up
from privtraj.recipe import LARGEST_EPSILON, SMALLEST_EPSILON, Recipe, check_hides_counts

if TYPE_CHECKING:  # heavy, and not needed where the answer is known already
    from privtraj.measures.base import Measure

Progress = Callable[[int, int], None]

LARGEST_TIMES, LARGEST_FEATURES = 1000, 64  # that may be asked for
# Set by hand.
SEED = 1
STEPS = (-3, 0, 3)  # powers of two of epsilon: each takes a fit of every stand-in
SCORED_TIMES = 3  # at which a fit is compared with the truth: each takes an optimal transport
READ_AT = np.array([0.12, 0.45, 0.83])  # where they are compared if people are at any time
# Set by hand: what is said of how many people per time.
GOOD = 20  # below it a forecast warns
POOR = 5  # below it one should expect hardly anything
_BUDGET = ("epsilon", "delta", "adjacency", "measure")
BY_HAND = "you set it by hand"
CHOSEN = {
    "cells_per_side": "cells per feature",
    "particles": "particles per time",
    "steps": "steps",
    "windows": "windows of time",
}
"""Settings that a fit chooses, in words."""


# What is asked ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """Everything that a forecast follows from. people: at all times together.

    times: at which all records are, such as days of an experiment; None for any time.
    public_counts: whether numbers of people in time bins will be public.
    columns: as declared, or nothing but `features` numbers.
    """

    people: int
    times: int | None
    features: int
    recipe: Recipe
    public_counts: bool = False
    records_per_person: int = 1
    columns: tuple[Column, ...] = ()

    @property
    def records(self) -> int:
        """Of all people together."""
        return self.people * self.records_per_person

    @property
    def by_hand(self) -> dict[str, Any]:
        """Settings of the recipe beside its budget and measure."""
        chosen = self.recipe.chosen().items()
        return {name: value for name, value in chosen if name not in _BUDGET}

    @property
    def weak(self) -> list[str]:
        """What is wrong with the guarantee that is asked for, in sentences."""
        return weaknesses(self.recipe.epsilon, self.recipe.delta, self.people)

    @property
    def measure(self) -> Measure:
        """What a fit would use."""
        from privtraj.synthesizer import TrajectorySynthesizer

        return TrajectorySynthesizer.of(self.recipe).measure_for(self.features)

    @property
    def planned(self) -> tuple[Measure, list[tuple[Any, int]]]:
        """What a fit would use, and what it may release; refuses what no fit takes."""
        from privtraj.data.public import declared_axis
        from privtraj.data.snapshots import Snapshots
        from privtraj.privacy.guard import MemoryRows
        from privtraj.synthesizer import TrajectorySynthesizer

        numbers = (Number(0.0, 1.0, f"number {k + 1}") for k in range(self.features))
        columns, synthesizer = self.columns or tuple(numbers), TrajectorySynthesizer.of(self.recipe)
        rows = MemoryRows(np.empty((0, len(columns)), np.float32), np.empty(0))
        times = None if self.times is None else np.linspace(0.0, 1.0, self.times)
        axis = declared_axis(times, (0.0, 1.0))
        nobody = Snapshots(axis, columns, "time", rows, self.records_per_person, False)
        measure = synthesizer.checked_for(nobody)
        releases = measure.plan(nobody, synthesizer).releases
        return measure, [(one.event, 1 if one.shared else one.times) for one in releases]

    def to_dict(self) -> dict[str, Any]:
        own = {k: v for k, v in vars(self).items() if k not in ("recipe", "columns")}
        budget = {name: getattr(self.recipe, name) for name in _BUDGET}
        return {**own, **budget, "settings": self.by_hand}

    def text(self) -> str:
        """In two lines, and what its guarantee means."""
        recipe, g, columns = self.recipe, self.records_per_person, _of(self.features, "feature")
        if self.columns:
            shown = [column for column in self.columns if not column.of]
            levels = [column.levels for column in shown if isinstance(column, Category)]
            columns = (
                f"{_of(len(shown) - len(levels), 'number')} and "
                f"{_of(len(levels), 'category', 'categories')} of {sum(levels)} values together"
            )
        each = "one record each" if g == 1 else f"{g} records each"
        when = "at any time"
        if self.times is not None:
            when = f"at {self.times} times ({self.records // self.times:,} per time)"
        counts = "public" if self.public_counts else "private"
        hand = ", ".join(f"{name} {value}" for name, value in sorted(self.by_hand.items()))
        right = chance_right(recipe.epsilon, recipe.delta)
        if not self.public_counts:  # which nobody has told yet
            right = min(right, (1 + delta_at(self.planned[1], 0.0, recipe.adjacency)) / 2)
        secret = "whether any one person is in the data"
        if recipe.adjacency != "add-remove":
            secret = "what any one person's records say"
        promise = (
            f"At this epsilon and delta {secret} {shows(right)}: an attacker who starts at 50% "
            f"will be right in at most {math.ceil(1000 * right - 1e-9) / 10:g}% of cases, by the "
            "noise that is planned, which the certificate counts, too."
        )
        lines = (
            f"Forecast for {self.people:,} people, {each}, {when}, {columns},\n"
            f"epsilon {recipe.epsilon:g}, delta {short(recipe.delta)}, {recipe.adjacency}, numbers "
            f"of people per time {counts}" + (f", by hand: {hand}" if hand else "")
        )
        warned = [f"WARNING: {sentence}." for sentence in self.weak]
        return "\n\n".join([lines, *map(_wrapped, [promise, *warned])])


@dataclass(frozen=True, eq=False)
class Forecast:
    """What to expect of a fit; nothing in it is about anybody.

    measure, reason: how the budget will be spent, and why.
    epsilons: (k,) that were tried, `epsilon` among them.  curve: what to expect at each, by
    simulation; nothing where some columns are categories, or may be missing.
    settings: what the fits at `epsilon` chose, (least, most) over stand-ins.
    simulated: people in each simulated fit.
    kept: of each category, how many people a value needs for its share and for the means of numbers
    among them, and what is lost of its values if they are equally frequent (`groups`).
    """

    question: Question
    measure: str
    reason: str
    epsilons: Floats
    curve: tuple[Estimate, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    simulated: int = 0
    kept: tuple[dict[str, Any], ...] = ()

    @property
    def epsilon(self) -> float:
        """The one that was asked for."""
        return self.question.recipe.epsilon

    @property
    def worth(self) -> Floats:
        """(k,) people per time, over the curve."""
        return np.array([level.worth for level in self.curve])

    @property
    def expected(self) -> Estimate | None:
        """At the epsilon that was asked for, if anything was simulated."""
        return self.curve[self.epsilons.tolist().index(self.epsilon)] if self.curve else None

    @property
    def warning(self) -> str | None:
        """What to know before fitting, and what would help; None if nothing."""
        few = f"{self.question.people:,} people are few for "
        lost = [
            f"the {one['values']} values of '{one['column']}'" for one in self.kept if one["lost"]
        ]
        if lost:
            return (
                f"{few}these values at this epsilon: expect to lose {' and '.join(lost)}, if they "
                "are equally frequent. Merge rare values, or use more people or a larger epsilon."
            )
        if self.expected is None or self.expected.worth >= GOOD:
            return None
        little = "hardly anything" if self.expected.worth < POOR else "little"
        helps = f"no epsilon that was tried reaches {GOOD}"
        pairs = zip(self.epsilons.tolist(), self.curve, strict=True)
        for epsilon in [e for e, level in pairs if e > self.epsilon and level.worth >= GOOD][:1]:
            vain = ", which promises little to anybody," * (epsilon > LARGE_EPSILON)
            helps = f"epsilon {epsilon:.3g}{vain} would reach {GOOD}, by simulation"
        return (
            f"{few}this wish: expect {little}, as {self.expected} per time is below {GOOD}. More "
            f"people help, or fewer features; {helps}."
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "question": self.question.to_dict(),
            "columns": [str(column) for column in self.question.columns if not column.of],
            "measure": self.measure,
            "reason": self.reason,
            "expected": self.expected and asdict(self.expected),
            "curve": [
                {"epsilon": epsilon, **asdict(level)}
                for epsilon, level in zip(self.epsilons.tolist(), self.curve, strict=True)
            ],
            "settings": self.settings,
            "kept": list(self.kept),
            "warning": self.warning,
            "weak_guarantee": self.question.weak,
            "largest_worth": MOST_TOLD,
            "stand_ins": list(STAND_INS) if self.curve else [],
            "simulated_people": self.simulated,
            "privacy_spent": 0,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any], question: Question) -> Forecast:
        """What `to_dict` wrote of the answer to this question."""
        curve = [dict(point) for point in values["curve"]]
        epsilons = np.array([point.pop("epsilon") for point in curve], float)
        levels = tuple(Estimate(**point) for point in curve)
        told = (values[name] for name in ("settings", "simulated_people"))
        return cls(question, values["measure"], values["reason"], epsilons, levels, *told)

    def __str__(self) -> str:
        question, said = self.question, self._simulated() if self.curve else self._of_categories()
        warned = [_wrapped(f"WARNING: {self.warning}")] if self.warning else []
        return "\n\n".join([question.text(), *said[:-1], *warned, _wrapped(said[-1])])

    def _simulated(self) -> list[str]:
        """What came out, how it was made, and what it does not say."""
        level, crowds = self.expected, list(STAND_INS)
        assert level is not None
        meant = (
            "That is worse than the raw, unprotected record of a single person at each time."
            if level.worth < 1
            else "That means: people are placed as well as by the raw, unprotected records of "
            f"{level} at each time. It is about positions, not about correlations, rare values or "
            "paths."
        )
        answer = (
            f"Expect a result worth {level} per time ({about(level.low)} to {about(level.high)} in "
            f"nine cases of ten). {meant}"
        )
        rows: list[tuple[str, ...]] = [("", "epsilon", "worth", "from", "to", "people per time")]
        for epsilon, one in zip(self.epsilons, self.curve, strict=True):
            mark = "  >" if epsilon == self.epsilon else ""
            numbers = (about(one.worth) + "+" * one.or_more, about(one.low), about(one.high))
            rows.append((mark, f"{epsilon:.3g}", *numbers, ""))
        how = [f"private {self.measure}"]
        for key, what in CHOSEN.items():
            least, most = self.settings[key]
            if most:
                how.append(f"{least} {what}" if least == most else f"{least} to {most} {what}")
        size, people = "", self.question.people
        if self.simulated < people:
            size = f"with {self.simulated:,} people instead of {people:,}, and as much noise per "
            size += "person, "
        return [
            _wrapped(answer),
            "\n".join(aligned(rows, right=range(1, 5))),
            f"The fit would use {', '.join(how)}.",
            f"Simulated {size}on {len(STAND_INS)} public stand-in crowds (such as {crowds[0]} or "
            f"{crowds[-1]}): no data were read and nothing was spent. Your people may be harder or "
            "easier to describe than these; the report of the fit will say what the released model "
            "is worth.",
        ]

    def _of_categories(self) -> list[str]:
        """What values need, of which nothing is simulated."""
        parts = [_wrapped(f"The fit would use private {self.measure}, because {self.reason}.")]
        if self.kept:
            heads = ("  category", "values", "share from", "means from", "if even", "")
            rows: list[tuple[str, ...]] = [heads]
            for one in self.kept:
                lost = {"": "kept", "numbers": "means lost", "share": "lost"}[one["lost"]]
                fewest = (about(one["fewest_for_share"]), about(one["fewest_for_means"]))
                cells = (str(one["values"]), *fewest, about(one["people_each"]), lost)
                rows.append((f"  {one['column']}", *cells))
            parts += [
                _wrapped(
                    "A value keeps its share, and the means of numbers among its people, from so "
                    "many people on, at all times together. What fewer have comes out as in "
                    "everybody, or not at all: it is lost. So many people have each value if all "
                    "are equally frequent:"
                ),
                "\n".join(aligned(rows, right=(1, 2, 3, 4))),
            ]
        return [
            *parts,
            "How good the people will be beyond that is not simulated for categories, and not "
            "promised: fit and report say which values were lost. No data were read and nothing "
            "was spent.",
        ]


def _wrapped(paragraph: str) -> str:
    """In lines of at most 96 letters."""
    return textwrap.fill(paragraph, 96)


def _of(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or f'{one}s'}"


# The plan -----------------------------------------------------------------------------------------


def plan(
    people: int,
    *,
    features: int | None = None,
    columns: Any = None,
    times: int | None = None,
    epsilon: float = 1.0,
    delta: float = 1e-5,
    adjacency: Adjacency = "add-remove",
    measure: str = "auto",
    public_counts: bool = False,
    records_per_person: int = 1,
    keep: bool = True,
    progress: Progress | None = None,
    **settings: Any,
) -> Forecast:
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
    if features is None and columns is None:
        raise InputError("say what columns there are: ", Arg("features"), " or ", Arg("columns"))
    least = 1 if columns is None else 0
    count = 0 if features is None else _whole("features", features, least, LARGEST_FEATURES)
    declared: tuple[Column, ...] = tuple(Number(0.0, 1.0, f"number {k + 1}") for k in range(count))
    if columns is not None:
        made_before = all(isinstance(column, Number | Category) for column in columns)
        others = columns if made_before else declared_columns(None, None, columns=columns)
        declared = (*declared, *others)
    known = {*inspect.signature(Recipe).parameters} - {"seed"}
    if not settings.keys() <= known:
        raise InputError(
            f"there is no such setting among {', '.join(settings)}: use those of "
            "TrajectorySynthesizer"
        )
    question = Question(
        _whole("people", people, 2, 10**12),
        None if times is None else _whole("times", times, 2, LARGEST_TIMES),
        _whole("features", len(declared), 1, LARGEST_FEATURES),
        Recipe(float(epsilon), float(delta), adjacency=adjacency, measure=measure, **settings),
        bool(public_counts),
        _whole("records_per_person", records_per_person, 1, LARGEST_TIMES),
        declared if (mixed := Axes.of(declared).mixed) else (),
    )

    def made() -> Forecast:
        _check(question)
        return _outlook(question) if mixed else _simulated(question, progress)

    if mixed or not keep:
        return made()

    key = {**question.to_dict(), "stand_ins": list(STAND_INS)}
    found = kept("plan", key, lambda answer: Forecast.from_dict(answer, question), made)
    assert found is not None
    return found


forecast = plan  # the same call, by the name of what it returns


def _whole(name: str, value: Any, low: int, high: int) -> int:
    if not (is_whole(value) and low <= value <= high):
        raise InputError(Arg(name), f" must be a whole number from {low} to {high}")
    return int(value)


def _check(question: Question) -> None:
    from privtraj.synthesizer import TrajectorySynthesizer

    times = question.times or 1
    if question.people < times:
        few = f" is {times}: a forecast needs at least one person per time"
        raise InputError(Arg("people"), f" is {question.people} and ", Arg("times"), few)
    if question.records_per_person > (question.times or LARGEST_TIMES):
        most = (" must not exceed ", Arg("times"), ": a person has one per time")
        raise InputError(Arg("records_per_person"), *most)
    TrajectorySynthesizer.of(question.recipe).check()


# Batch after batch ------------------------------------------------------------------------------

PERIODS = {"day": 1.0, "week": 7.0, "month": 365.25 / 12, "quarter": 365.25 / 4, "year": 365.25}


@dataclass(frozen=True)
class Horizon:
    """Batches of new people over years: what each of them buys, and what a person pays.

    each: one batch by itself.  whole: one fit of all, which a model that grows can reach at best.
    paid: {in how many batches: (epsilon, delta)}, composed exactly.
    """

    every: str
    each: Forecast
    whole: Forecast
    paid: dict[int, tuple[float, float]]

    def to_dict(self) -> dict[str, Any]:
        paid = {str(k): dict(zip(_BUDGET, each, strict=False)) for k, each in self.paid.items()}
        both = {"each": self.each.to_dict(), "whole": self.whole.to_dict()}
        return {"every": self.every, "batches": max(self.paid), "paid": paid, **both}

    def __str__(self) -> str:
        epsilon, delta = self.paid[1]
        lines = [
            f"A batch of {self.each.question.people:,} people every {self.every}, {max(self.paid)} "
            f"in all: epsilon {up(epsilon)} and delta {up(delta, digits=2)} for each."
        ]
        if self.each.curve:
            lines.append(
                f"One batch by itself buys a result worth {self.each.expected} per time; one fit "
                f"of all of them would be worth {self.whole.expected}, which a model that extend "
                "grows can reach at best."
            )
        for often, paid in self.paid.items():
            who = "one batch" if often == 1 else f"{often} batches"
            lines.append(f"Whoever is in {who} has epsilon {up(paid[0])}, delta {up(paid[1], 2)}.")
        return "\n".join(map(_wrapped, lines)) + f"\n\n{self.each}"


def horizon(
    people: int,
    every: str,
    batches: int,
    *,
    days: float = 365.25,
    most: int | None = None,
    budget: float | None = None,
    **asked: Any,
) -> Horizon:
    """What batches of so many people each buy, one every day, week, month, quarter or year.

    days, most: people may be in at most so many batches that so many days touch, by default in all
    of them.  budget: epsilon that these cost together at delta; each then has an equal part of it,
    as exact composition allows, instead of `epsilon` and `delta`.  asked: as `plan` takes it.
    """
    often = min(most or batches, 1 + math.ceil(days / PERIODS[every] - 1e-9), batches)
    relation: Adjacency = asked.get("adjacency", "add-remove")
    epsilon, delta = asked.get("epsilon", 1.0), asked.get("delta", 1e-5)

    def together(each: float, times: int) -> float:
        return epsilon_at(
            [(Opaque(each, delta, "a batch", relation), times)], times * delta, relation
        )

    if budget is not None:
        check_budget(budget, delta)
        delta /= often
        epsilon = bisect(lambda each: together(each, often) <= budget, budget / often, budget, 1e-6)
    paid = {k: (together(epsilon, k), k * delta) for k in sorted({1, often, batches})}
    asked |= {"epsilon": epsilon, "delta": delta}
    return Horizon(every, plan(people, **asked), plan(people * batches, **asked), paid)


# By simulation --------------------------------------------------------------------------------


def _simulated(question: Question, progress: Progress | None) -> Forecast:
    """The forecast, by fits to all stand-ins over epsilon."""
    from privtraj.assess.simulate import fewer

    wanted = question.recipe.epsilon * 2.0 ** np.array(STEPS)
    fitted = np.unique(np.clip(wanted, SMALLEST_EPSILON, LARGEST_EPSILON))
    total = len(STAND_INS) * len(fitted) + 1
    done = progress or (lambda fits, total: None)
    done(0, total)
    worths, settings = worth_over(question, fitted, lambda fits: done(fits, total))
    done(total, total)
    # between two of them, logarithms of worth are about straight over those of epsilon
    epsilons = np.sort(np.append(fitted, np.sqrt(fitted[1:] * fitted[:-1])))
    logs = [
        np.interp(np.log(epsilons), np.log(fitted), x)
        for x in np.log(np.maximum(worths, LEAST_WORTH))
    ]
    curve = tuple(map(Estimate.of, np.exp(np.transpose(logs))))
    measure = question.measure
    people = fewer(question.recipe, measure, question.people, question.records_per_person)[1]
    reason = "columns are numbers" if question.recipe.measure == "auto" else BY_HAND
    return Forecast(question, measure.name, reason, epsilons, curve, settings, people)


def worth_over(
    question: Question, epsilons: Floats, done: Callable[[int], None] = lambda fits: None
) -> tuple[Floats, dict[str, Any]]:
    """Worth (stand-ins, k) of fits at epsilons (k,), and what those at the asked one chose."""
    from privtraj.assess.simulate import RELEASED, StandIn, Yardstick, drawn, fewer, simulate

    measure, each = question.measure, question.records_per_person
    times, worths, chosen = scored_times(question), [], []
    for name in STAND_INS:
        crowd = StandIn(name, question.features, question.times, each, question.public_counts)
        yardstick = Yardstick.of(crowd, times)
        for epsilon in epsilons.tolist():
            recipe = question.recipe.again(epsilon=epsilon)
            recipe, people = fewer(recipe, measure, question.people, each)
            public = question.public_counts
            fit = simulate(recipe, crowd, people, seed=SEED, public_counts=public)
            clouds = drawn(fit, times, RELEASED, SEED).swapaxes(0, 1)
            worths.append(yardstick.worth(yardstick.error(list(clouds))))
            if epsilon == question.recipe.epsilon:
                chosen.append(fit.settings)
            done(len(worths))
    of_fits = {key: [settings.get(key) or 0 for settings in chosen] for key in CHOSEN}
    ranges = {key: [min(values), max(values)] for key, values in of_fits.items()}
    return np.array(worths).reshape(len(STAND_INS), -1), ranges


def scored_times(question: Question) -> Floats:
    """When a fit is compared with the truth: the middle time of each third."""
    if question.times is None:
        return READ_AT
    every = np.linspace(0.0, 1.0, question.times)
    parts = np.array_split(every, min(question.times, SCORED_TIMES))
    return np.array([part[len(part) // 2] for part in parts])


# What is known without a simulation -----------------------------------------------------------


def _outlook(question: Question) -> Forecast:
    """What is known without any data of a fit of these columns; refuses what no fit takes."""
    from privtraj.assess.groups import outlook
    from privtraj.measures.tables import TABLES

    (measure, planned), columns = question.planned, question.columns
    mu = next(1 / one.noise_multiplier for one, _ in planned if one.what.startswith(TABLES))
    kept = tuple(outlook(mu, question.records, columns))
    reason = "some numbers may be missing"
    if kept:
        many = "is 1 category" if len(kept) == 1 else f"are {len(kept)} categories"
        reason = f"there {many} among the columns"
    reason += ", and tables of two columns at a time are few and small"
    reason = reason if question.recipe.measure == "auto" else BY_HAND
    return Forecast(question, measure.name, reason, np.empty(0), kept=kept)


def price(
    records: int,
    measure: str,
    *,
    epsilon: float,
    delta: float,
    adjacency: Adjacency = "add-remove",
    together: bool = False,
) -> float:
    """Noise that `records` records per person need, over the noise that one needs.

    Kept at random, a person is one record and moves a sum by c. With up to g records in different
    bins a person moves it by sqrt(g) c, by g c where they may be together in a bin; and counts by
    g, or a little less where delta helps, but by 1 where they may be together, as people are
    counted then. But the sums then hold all records: with r of them per
    person on average, noise per record is price / r times that of one at random, so paying for all
    is better where r > price.
    """
    from privtraj.measures.registry import find
    from privtraj.privacy.ledger import calibrate_laplace

    known = find(measure)
    if known is None or known.needs_delta:  # whose noise is Gaussian
        return float(records) if together else math.sqrt(records)
    budget = (epsilon, delta, adjacency)
    return calibrate_laplace(*budget) / calibrate_laplace(*budget, person=Person(records, together))
