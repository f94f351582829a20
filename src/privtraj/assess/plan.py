"""Before a fit: what a budget will buy, and on what it will be spent. No record is asked.

Nothing is known about the data yet but their public shape, so `plan` runs the fit itself on public
stand-ins of that shape, several times, and says what came out: over epsilon and, where it is too
little, what would help. Of columns that are categories it says how the fit will measure, and with
what noise. `intention` lists what a fit would release, and `price` says what several records of a
person cost.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.assess.common import Estimate, kept, mean_worth
from privtraj.assess.forecast import GOOD, STAND_INS, Forecast, MixedForecast, Question, Remedies
from privtraj.base.arrays import Floats
from privtraj.base.errors import Arg, InputError, aligned, is_whole, short
from privtraj.columns.declared import declared_columns
from privtraj.columns.kinds import Axes, Category, Column, Number
from privtraj.privacy.events import (
    Adjacency,
    LaplaceCounts,
    Person,
    check_budget,
    check_hides_counts,
)
from privtraj.recipe import LARGEST_EPSILON, SMALLEST_EPSILON, Recipe

if TYPE_CHECKING:  # heavy, and not needed where the answer is known already
    from privtraj.base.space import TimeAxis
    from privtraj.data.public import PublicInputs
    from privtraj.data.snapshots import Snapshots
    from privtraj.domain.domain import Domain
    from privtraj.measures.base import Measure
    from privtraj.synthesizer import TrajectorySynthesizer

Progress = Callable[[int, int], None]

LARGEST_TIMES, LARGEST_FEATURES = 1000, 64  # that may be asked for
# Set by hand.
SEED = 1
STEPS = {True: (-3, -2, -1, 0, 1, 2, 3), False: (-3, -1.5, 0, 1.5, 3)}
"""Powers of two of epsilon, where fits are quick, and where they are not."""
MORE_PEOPLE = (2, 4, 8, 16, 32, 64)
SCORED_TIMES = 3  # at which a fit is compared with the truth: each takes an optimal transport
READ_AT = np.array([0.12, 0.45, 0.83])  # where they are compared if people are at any time


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
    )
    if Axes.of(declared).mixed:
        _check(question)
        return _outlook(question, declared)

    def made() -> Forecast:
        _check(question)
        return _simulated(question, progress)

    if not keep:
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


# By simulation --------------------------------------------------------------------------------


def _simulated(question: Question, progress: Progress | None) -> Forecast:
    """The forecast, by fits to all stand-ins over epsilon."""
    from privtraj.assess.simulate import fewer

    measure, asked = chosen_measure(question), question.recipe.epsilon
    wanted = [asked * 2.0**step for step in STEPS[measure.quick]]
    epsilons = np.array([e for e in wanted if SMALLEST_EPSILON <= e <= LARGEST_EPSILON])
    total = len(STAND_INS) * len(epsilons) + 1
    done = progress or (lambda fits, total: None)
    done(0, total)
    worths, settings = worth_over(question, epsilons, lambda fits: done(fits, total))
    levels = tuple(
        Estimate.of(mean_worth(each), measure.optimism, question.records * epsilon)
        for each, epsilon in zip(worths.T, epsilons.tolist(), strict=True)
    )
    remedies = None
    if levels[epsilons.tolist().index(asked)].worth < GOOD:
        enough = [e for e, level in zip(epsilons, levels, strict=True) if level.worth >= GOOD]
        d = question.features
        less = {d - 1, round(d * 0.7), d // 2, d // 4, 2, 1}
        remedies = Remedies(
            epsilon=min((float(e) for e in enough if e > asked), default=None),
            people=_first(question, "people", [question.people * k for k in MORE_PEOPLE]),
            features=_first(question, "features", sorted(n for n in less if 1 <= n < d)[::-1]),
        )
    done(total, total)
    people = fewer(question.recipe, measure, question.people, question.records_per_person)[1]
    return Forecast(question, epsilons, levels, settings, remedies, people, len(STAND_INS))


def worth_over(
    question: Question, epsilons: Floats, done: Callable[[int], None] = lambda fits: None
) -> tuple[Floats, dict[str, Any]]:
    """Worth (stand-ins, k) of fits at epsilons (k,), and what those at the asked one chose."""
    from privtraj.assess.simulate import StandIn, Yardstick, fewer, simulate

    measure, each = chosen_measure(question), question.records_per_person
    times, worths, chosen = scored_times(question), [], []
    for name in STAND_INS:
        crowd = StandIn(name, question.features, question.times, each, question.public_counts)
        yardstick = Yardstick.of(crowd, times)
        for epsilon in epsilons.tolist():
            recipe = question.recipe.again(epsilon=epsilon)
            recipe, people = fewer(recipe, measure, question.people, each)
            public = question.public_counts
            fit = simulate(recipe, crowd, people, times, seed=SEED, public_counts=public)
            worths.append(yardstick.worth(yardstick.error(list(fit.people.swapaxes(0, 1)))))
            if epsilon == question.recipe.epsilon:
                chosen.append(fit.model.settings)
            done(len(worths))
    ranges: dict[str, Any] = {"measure": measure.name}
    for key in ("cells_per_side", "particles", "steps", "windows"):
        values = [settings.get(key) or 0 for settings in chosen]
        ranges[key] = [min(values), max(values)]
    return np.array(worths).reshape(len(STAND_INS), -1), ranges


def chosen_measure(question: Question) -> Measure:
    """What a fit would use."""
    from privtraj.synthesizer import TrajectorySynthesizer

    return TrajectorySynthesizer.of(question.recipe).measure_for(question.features)


def scored_times(question: Question) -> Floats:
    """When a fit is compared with the truth: the middle time of each third."""
    if question.times is None:
        return READ_AT
    every = np.linspace(0.0, 1.0, question.times)
    parts = np.array_split(every, min(question.times, SCORED_TIMES))
    return np.array([part[len(part) // 2] for part in parts])


def _first(question: Question, name: str, values: Iterable[int]) -> int | None:
    """The first of these values, in place of the asked one, that reaches a good forecast."""
    for value in values:
        other = replace(question, **{name: value})  # type: ignore[arg-type]
        epsilon = other.recipe.epsilon
        worth, optimism = worth_over(other, np.array([epsilon]))[0], chosen_measure(other).optimism
        if Estimate.of(mean_worth(worth), optimism, other.records * epsilon).people >= GOOD:
            return value
    return None


# What is known without a simulation -----------------------------------------------------------


def _outlook(question: Question, columns: tuple[Column, ...]) -> MixedForecast:
    """What is known without any data of a fit of these columns; refuses what no fit takes.

    count_noise is the deviation of a Gaussian count, when the whole budget buys one table of counts
    of disjoint cells; records of a person are taken to be in different cells, which is the best
    case.
    """
    from privtraj.data.public import declared_axis
    from privtraj.privacy.ledger import calibrate_gaussian
    from privtraj.synthesizer import TrajectorySynthesizer

    recipe, each = question.recipe, question.records_per_person
    frame = (declared_axis(None, (0.0, 1.0)), columns, "time", each, False)
    measure = TrajectorySynthesizer.of(recipe).checked_for(_nobody(*frame)).name
    shown = [column for column in columns if not column.of]
    levels = [column.levels for column in shown if isinstance(column, Category)]
    reason = "some numbers may be missing"
    if levels:
        many = "is 1 category" if len(levels) == 1 else f"are {len(levels)} categories"
        reason = f"there {many} among the columns"
    reason += ", and tables of two columns at a time are few and small"
    mu = calibrate_gaussian(
        recipe.epsilon, recipe.delta, recipe.adjacency, person=Person(each, False)
    )
    return MixedForecast(
        question,
        tuple(map(str, shown)),
        numbers=sum(isinstance(column, Number) for column in shown),
        categories=len(levels),
        values=sum(levels),
        combinations=math.prod(levels),
        measure=measure,
        reason=reason if recipe.measure == "auto" else "you set it by hand",
        count_noise=1 / mu,
    )


def _nobody(
    axis: TimeAxis, columns: tuple[Column, ...], time_name: str, most: int, together: bool
) -> Snapshots:
    """Snapshots of no people, which have all that is public."""
    from privtraj.data.snapshots import Snapshots
    from privtraj.privacy.rows import MemoryRows

    rows = MemoryRows(np.empty((0, len(columns)), np.float32), np.empty(0))
    return Snapshots(axis, columns, time_name, rows, most, together)


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
    g, or a little less where delta helps. But the sums then hold all records: with r of them per
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


@dataclass(frozen=True)
class Intention:
    """A fit before it begins. words: of its measure.  windows: the resolution in time, in words.

    releases: of each what it is, how many times at most, and the noise: the standard deviation of
    each number, of all times together, in a unit, of which a contribution is the most that one
    record adds to a sum.
    """

    epsilon: float
    delta: float
    adjacency: str
    measure: str
    words: str
    windows: str
    records_per_person: int
    releases: tuple[dict[str, Any], ...]

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "releases": list(self.releases)}

    def __str__(self) -> str:
        most = self.records_per_person
        each = "one record" if most == 1 else f"up to {most} records"
        rows = [("  what is released", "", "its noise")]
        for one in self.releases:
            once = one["times"] == 1
            noise = f"{one['noise']:.2g} {one['unit']} in each number"
            if one["unit"] == "contributions":
                noise = f"{one['noise']:.2g} times what one record adds at most"
                noise += "" if once else ", all times together"
            rows.append(
                (f"  {one['what']}", "once" if once else f"up to {one['times']} times", noise)
            )
        return (
            f"fit would spend epsilon {self.epsilon:g} and delta {short(self.delta)} "
            f"({self.adjacency}, {each} of a person),\n"
            f"once, on {self.words}, in {self.windows}.\n"
        ) + "\n".join(aligned(rows))


def intention(
    synthesizer: TrajectorySynthesizer, public: PublicInputs, domain: Domain | None
) -> Intention:
    """What this synthesizer would do with any table of these columns; refuses what none would."""
    frame = (public.time_name, public.most_records, public.together)
    nobody = replace(_nobody(public.axis, public.columns, *frame), domain=domain)
    releases = []
    measure = synthesizer.checked_for(nobody)
    for planned in measure.plan(nobody, synthesizer).releases:
        event: Any = planned.event
        noise, unit = float(event.noise_variance) ** 0.5, "contributions"
        if isinstance(event, LaplaceCounts):
            unit = "records" if event.weight is None else "people"
            noise /= event.weight or 1
        about = {"what": event.what, "times": planned.times, "noise": noise, "unit": unit}
        releases.append(about)
    windows = {
        "bins": f"each of the {nobody.n_times} time bins by itself",
        "auto": "as many windows of time as it finds to suit how people move",
    }
    return Intention(
        float(synthesizer.epsilon),
        float(synthesizer.delta),
        synthesizer.adjacency,
        measure.name,
        measure.words,
        windows.get(str(synthesizer.windows), f"{synthesizer.windows} windows of time"),
        public.most_records,
        tuple(releases),
    )
