"""A released model and a batch of further people become one model.

People of the batch are at later times, or at times that the model knows already, or both. If nobody
of them was in an earlier batch, all batches together cost a person what the dearest costs
(`privacy.accounting`, Parallel). The old model is the prior, and using it is free: nothing is asked
about its people again, and no row of theirs is needed.

Counts.  The model keeps the noisy counts c_k of its windows (`Record.counted`). Cells and windows
of the batch are decided from the old model, so that all of epsilon buys counts. Then old and new
counts together are what one fit would have measured in these windows, and are read as one fit reads
them (`Counts.clouds`): averaged over time as far as people stay, coupled, with curves through all.
    more people at a known window: of N_i people with noise v_i in occupied cells C, shares c_i /
    N_i are averaged by their precision  N_i^2 / (N_i + C v_i).
    noise of different size: counts are scaled to the same, people too, which leaves shares alone
    and weighs windows as their noise says.
    windows that are long past are kept as one sum, so that a batch takes the time of its own
    records however many there were: `REMEMBERED` windows are read with every batch.

Anything else (gradients, tables, models without counts) fits the batch by itself; its curves go on
from the old ones by optimal transport, and at known times they take the place of as many old ones
as the precision says.

past="keep": particles of times that were published stay to the bit, and new curves go on from them.
past="revise": windows that are still kept singly are read anew with what the batch knows.
"""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from privtraj.base.arrays import (
    Floats,
    Ints,
    along_main_axis,
    equal_weight,
    systematic,
    total_variance,
)
from privtraj.base.errors import Arg, InputError
from privtraj.base.space import Slabs, TimeAxis, hat_functions
from privtraj.columns.kinds import of_tables
from privtraj.data.snapshots import Snapshots
from privtraj.domain.walking import within
from privtraj.measures.base import NOT_COUNTED, Marginals, Task, left, reference_of
from privtraj.measures.cells import spread_out
from privtraj.measures.counts import CELLS, MOST_REMEMBERED, Counts, expected_error
from privtraj.measures.numbers import through_windows
from privtraj.measures.windows import (
    WINDOW_NOISE,
    WINDOW_NOISE_OF_GRADIENTS,
    Resolution,
    WindowChoice,
)
from privtraj.model.model import TrajectoryModel
from privtraj.motion.process import Scale, matched
from privtraj.privacy import noise
from privtraj.privacy.certificate import (
    BATCHES,
    CAUTION,
    CHECKED,
    NEW_PEOPLE,
    STATED,
    Certificate,
    batch,
    certify,
    certify_disjoint,
    check_declared,
    stated_parallel,
    weaknesses,
)
from privtraj.privacy.events import LaplaceCounts, Person
from privtraj.privacy.guard import CellCounts, Guard, Laplace, Release, Watcher
from privtraj.privacy.ledger import BudgetPlan, Ledger, Planned, calibrate_laplace
from privtraj.privacy.ledger_file import LedgerFile
from privtraj.recipe import Recipe
from privtraj.stream.people import People
from privtraj.synthesizer import TrajectorySynthesizer

REMEMBERED = 12
"""Windows whose counts are kept one by one, at most; those before them are kept as their sum."""
MOST_WINDOWS = 8
"""Of a batch."""
MOMENTS = 8
"""That stand for the time of a window."""
USUAL_PEOPLE = 0.5
"""How far the number of people of a window is from the rate so far, as a share of it."""
USUAL_NOISE = 300.0
"""People, times epsilon, whose noise and chance are about as large; all five by hand, 2026-11."""
WINDOWS_TELL = (
    *("people_per_time", "people_middles", "people_lengths"),
    *("significant_share", "cell_side"),
)
MATCHED = 512
"""Curves that are coupled at once; of more, those next to each other."""

Past = Literal["keep", "revise"]


class Batch(NamedTuple):
    """What is made of a batch and an old model.

    old: particles (K, m, d) of the model, as they are now.  since: up to when they hold.
    marginals, knots: of curves that go on from there; where knots are None, at the times.
    times: of interest.
    diagnostics: of windows.  replaced: how many of the model's last windows they stand for.
    """

    old: Floats
    since: float
    marginals: Marginals
    knots: Floats
    times: Floats
    diagnostics: dict[str, list[Any]]
    replaced: int
    counted: Floats = NOT_COUNTED


def snapshots_of(model: TrajectoryModel, source: Any, **reading: Any) -> Snapshots:
    """The records of a table with the columns, bounds and domain of a model; only when they were
    recorded (`time_range`, `bins`) and how they are read has to be said."""
    columns = {column.name: column for column in of_tables(model.columns)}
    known = {"time": model.time_name, "columns": columns, "domain": model.domain}
    return Snapshots.from_table(source, **known, **reading)


def extended(
    model: TrajectoryModel,
    snapshots: Snapshots,
    *,
    past: Past = "keep",
    ledger: LedgerFile | None = None,
    new_people: bool = False,
    people: People | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    seed: int | None = None,
    declared: Mapping[str, str] | None = None,
    watcher: Watcher | None = None,
) -> TrajectoryModel:
    """See `TrajectoryModel.extend`."""
    recipe = _recipe(model, epsilon, delta, seed)
    _check(model, snapshots, recipe, past)
    said = model.certificate.declared if declared is None else check_declared(declared)
    days = None if ledger is None else ledger.window_days
    claim: dict[str, Any] = {}
    if people is not None and ledger is not None and people.tells_apart(model.certificate, ledger):
        claim = {"most": people.most_batches, "people": people.in_words(days)}
    elif new_people:
        claim = {"most": 1, "people": "stated by the steward, and not checked"}
    elif days or stated_parallel(model.certificate.public_inputs.get(BATCHES, [])).most != 1:
        claim = {"most": None}
    if claim.get("most") != 1:
        claim["days"] = days
    maker = TrajectorySynthesizer.of(recipe)
    counts = _counts_on(model, maker, snapshots)
    if counts:
        maker = TrajectorySynthesizer.of(recipe.again(particles=model.particles.shape[1]))
        plan = _plan(recipe, snapshots.shape.person.in_slabs())
    else:
        maker = TrajectorySynthesizer.of(_alone(model, recipe))
        plan = maker.planned(snapshots)
    entry = None
    if not (ledger is None and people is None):
        snapshots, entry = maker._reserved(ledger, snapshots, new_people, people)
    spent, source = Ledger(*maker.budget, plan), noise.source_for(seed)
    guard = snapshots.guarded(maker.guard_class, spent, source, watcher=watcher)
    rng = np.random.default_rng(seed)  # of all but the guard's noise
    task = Task(snapshots, maker.recipe or recipe, plan, rng)
    made = _counted(model, guard, task, past) if counts else _fitted(model, guard, task, past)
    paid = certify(spent, public_inputs=snapshots.public_inputs(), private_noise=source.private)
    certificate = _certificate(model, snapshots, paid, made, claim)
    grown = _joined(model, made, replace(certificate, declared=said))
    if ledger is not None and entry is not None:
        try:
            ledger.settle(entry, spent_epsilon=paid.epsilon, model=grown.sha256)
        except InputError as error:  # the model is paid for: it must not be lost with the note
            warnings.warn(f"the reservation stands, but {error}", stacklevel=3)
    return grown


def _recipe(
    model: TrajectoryModel, epsilon: float | None, delta: float | None, seed: int | None
) -> Recipe:
    """That of the model, with another budget if one is given; of models without one, as it must
    have been."""
    stated = model.certificate
    recipe = model.recipe
    if recipe is None:
        recipe = Recipe(stated.target_epsilon, stated.delta, adjacency=stated.adjacency)
    budget = {"epsilon": epsilon, "delta": delta}
    given = {name: value for name, value in budget.items() if value is not None}
    return recipe.again(seed=seed, **given)


def _check(model: TrajectoryModel, snapshots: Snapshots, recipe: Recipe, past: str) -> None:
    """Refuse, before anything is spent, what cannot be added to this model."""
    if not isinstance(snapshots, Snapshots):
        raise InputError("extend takes Snapshots, from Snapshots.from_table or from_arrays")
    if past not in ("keep", "revise"):
        raise InputError(Arg("past"), " must be 'keep' or 'revise'")
    old, new = model.certificate.public_inputs, snapshots.public_inputs()
    for name in ("bounds", "domain", "most records of one person"):
        if old.get(name) != new.get(name):
            raise InputError(
                f"the batch has other {name} than the model: declare it as the model was, or fit a "
                "model of its own"
            )
    if snapshots.datetime != model.datetime:
        raise InputError("one of model and batch has dates, the other numbers as times")
    if recipe.public_counts is not None:
        raise InputError("a model with public numbers of people cannot be extended: fit anew")
    start, end = snapshots.axis.range
    if start < model.knots[0]:
        raise InputError("the batch begins before the model does: only later times can be added")
    if past == "keep" and end <= model.knots[-1]:
        raise InputError(
            "all times of the batch are in the model already, and the published past is kept: say ",
            Arg("past", "revise"),
            " to let these people improve it",
        )


def _counts_on(model: TrajectoryModel, maker: TrajectorySynthesizer, snapshots: Snapshots) -> bool:
    """Whether new counts can be combined with those of the model."""
    if not (model.counted.size and maker.measure_for(snapshots.axes).name == Counts.name):
        return False
    return bool(snapshots.axis.range[0] >= model.counted[model.counted[:, 4] == 0, 0].min())


def _plan(recipe: Recipe, person: Person) -> BudgetPlan:
    """One release: counts of cells, for all of the budget."""
    budget = recipe.epsilon, recipe.delta, recipe.adjacency
    epsilon = min(calibrate_laplace(*budget, person=person), noise.EPSILON_RANGE[1])
    if epsilon == 0:
        raise Counts().nothing_left()
    return BudgetPlan((Planned(LaplaceCounts(epsilon, CELLS, 0.0, *person, person.weight)),))


# Counts -------------------------------------------------------------------------------------------


def _counted(model: TrajectoryModel, guard: Guard, task: Task, past: Past) -> Batch:
    """Counts of the batch, read together with those that the model keeps."""
    axis, plot, d = task.public.axis, task.public.plot, len(model.bounds)
    listed, old = bool(model.diagnostics.get("listed_times")), model.counted.copy()
    edges = _new_edges(model, axis, task.recipe.epsilon, listed)
    if len(edges) and listed:
        old[-1, 1] = edges[0]
    later = np.stack([edges[:-1], edges[1:]], axis=1) if len(edges) else np.empty((0, 2))
    lengths = np.ones(len(old)) if listed else old[:, 1] - old[:, 0]
    per_length = old[:, 2].sum() / lengths.sum()
    people = per_length * (1.0 if listed or not len(later) else later[0, 1] - later[0, 0])
    epsilon = min(left(guard, calibrate_laplace), noise.EPSILON_RANGE[1])
    old = _refined(old, model, people, epsilon)
    rows = np.concatenate([old, np.zeros((len(later), old.shape[1]))])
    rows[len(old) :, :2] = later
    first = int(np.sum(rows[:, 1] <= axis.range[0]))  # windows that the batch is in, to the last
    last = int(np.sum(rows[:, 0] < axis.range[1]))
    cells, windows = old.shape[1] - 5, Slabs.between(rows[first + 1 : last, 0])
    side = round(cells ** (1 / d))
    release = Release(CellCounts(side), Laplace(epsilon), CELLS)
    answer = guard.in_slabs(windows).ask(release).astype(np.float64)

    # all that follows is post-processing
    variance, row = noise.laplace_variance(epsilon), slice(first, last)
    held = answer if plot is None else answer[:, plot.cells(side, d).ravel()]
    expected = np.full(last - first, held.sum() / len(held))
    if first >= len(old):
        expected = per_length * (np.ones(len(later)) if listed else np.diff(later, axis=1)[:, 0])
    known = (USUAL_PEOPLE * expected) ** 2
    known = known / (known + cells * variance)
    total = np.maximum(expected + known * (held.sum(axis=1) - expected), 1.0)
    in_use = len(np.unique((model.particles[-1] * side).astype(int), axis=0))
    for place, own, counts in zip(rows[row], total, answer, strict=True):
        both = np.array([[place[2], own], [place[3], variance]])
        weight = both[0] ** 2 / np.maximum(both[0] + in_use * both[1], 1.0)  # nobody has none
        share = weight / weight.sum() / np.maximum(both[0], 1.0) * both[0].sum()
        place[2:4] = both[0].sum(), share**2 @ both[1]
        place[5:] = share[0] * place[5:] + share[1] * counts
    return _read(model, rows, len(old), epsilon, task, past)


def _refined(rows: Floats, model: TrajectoryModel, people: float, epsilon: float) -> Floats:
    """The counts in cells of half the side, or a quarter and so on, where the error to expect with
    so many people in a window is less then: those of a cell are spread evenly over its parts."""
    d, least = len(model.bounds), rows.shape[1] - 5
    area = (12 * total_variance(model.particles[-1], model.weights[-1]) / d) ** (d / 2)
    side = round(least ** (1 / d))

    def error(side: int) -> float:
        return expected_error(side, people, d, epsilon, area)

    while error(2 * side) < error(side) and len(rows) * (2 * side) ** d <= MOST_REMEMBERED:
        cells = spread_out(rows[:, 5:].reshape(-1, *(side,) * d), 1) / 2**d
        rows = np.hstack([rows[:, :5], cells.reshape(len(rows), -1)])
        rows[:, 3] /= 2**d
        side *= 2
    return rows


def _new_edges(model: TrajectoryModel, axis: TimeAxis, epsilon: float, listed: bool) -> Floats:
    """Of windows at later times: each listed time, or as many as motion and noise suggest.

    In a window of length h people move by v h, of which curves through it hide a quarter or so of
    v^2 h^2 / 12, and every window costs a noise of c V / (people epsilon) (`measures.windows`):
    with w windows the sum is least at w^3 = (v h)^2 people epsilon / (24 c V).
    """
    known, (start, end) = float(model.knots[-1]), axis.range
    if end <= known:
        return np.empty(0)
    if listed:
        times = np.append(known, axis.times[axis.times > known])
        if not axis.declared or len(times) == 1:
            raise InputError(
                "people of this model are at listed times: give ",
                Arg("bins"),
                ", the times of the batch",
            )
        return np.append((times[:-1] + times[1:]) / 2, times[-1])
    start, d = max(float(start), known), len(model.bounds)
    length = min(end - start, model.scale.length)
    ends = hat_functions(np.array([known - length, known]), model.knots)
    here = np.einsum("qk,kmd->qmd", ends, model.particles)
    moved = float(np.mean(np.sum((here[1] - here[0]) ** 2, axis=1))) * ((end - start) / length) ** 2
    weights = model.weights[-1]
    spread = WINDOW_NOISE.get(d, WINDOW_NOISE_OF_GRADIENTS) * total_variance(here[1], weights)
    rows = model.counted
    people = (end - start) * rows[:, 2].sum() / np.diff(rows[:, :2], axis=1).sum()
    wanted = np.cbrt(moved * people * epsilon / (24 * max(spread, 1e-6)))
    return np.linspace(start, end, int(np.clip(np.rint(wanted), 1, MOST_WINDOWS)) + 1)


def _read(
    model: TrajectoryModel, rows: Floats, old: int, epsilon: float, task: Task, past: Past
) -> Batch:
    """Clouds and curves of all windows that are kept, `old` of them windows of the model."""
    listed = bool(model.diagnostics.get("listed_times"))
    while len(rows) > REMEMBERED + 1:  # the two that are longest past become one
        rows[1, 2:4] += rows[0, 2:4]
        rows[1, 5:] += rows[0, 5:]
        rows[1, 0], rows[1, 4] = rows[0, 0], 1.0
        rows, old = rows[1:], old - 1
    axis, snapshots = task.public.axis, task.public
    times = np.union1d(model.numeric_times, _times_of(axis, rows[old:], listed))
    inside = times[(times >= rows[0, 0]) & (times <= rows[-1, 1])]
    if listed:
        moments = inside
        of_moment = np.minimum(np.searchsorted(rows[:, 1], moments), len(rows) - 1)
    else:
        shares = (np.arange(MOMENTS) + 0.5) / MOMENTS
        moments = (rows[:, :1] + shares * np.diff(rows[:, :2], axis=1)).ravel()
        moments[[0, -1]] = rows[0, 0], rows[-1, 1]
        of_moment = np.repeat(np.arange(len(rows)), MOMENTS)
    scale = np.sqrt(noise.laplace_variance(epsilon) / rows[:, 3])
    people, counts, d = scale * rows[:, 2], scale[:, None] * rows[:, 5:], len(model.bounds)
    cost = WINDOW_NOISE.get(d, WINDOW_NOISE_OF_GRADIENTS) * len(rows) / (people.sum() * epsilon)
    variance = max(total_variance(model.particles[-1], model.weights[-1]), 0.003)
    choice = WindowChoice(of_moment, 0.0, variance * cost, variance, np.zeros(5))
    windows = Resolution(moments, listed, of_moment, choice)
    joint = TimeAxis(inside, axis.datetime, windows.moments[[0, -1]], axis.declared)
    task = task._replace(public=replace(snapshots, axis=joint))  # type: ignore[type-var]
    side = round(counts.shape[1] ** (1 / d))
    cloud = Counts().clouds(counts, side, epsilon, people, windows, task)
    unit = reference_of(task.recipe).within(Scale(model.bounds, moments[0], np.ptp(moments)))
    still = np.array(snapshots.axes.fixed)
    marginals, knots = through_windows(cloud.marginals, windows, task, unit, still)
    if snapshots.plot is not None:
        marginals = within(snapshots.plot, marginals)
    fine = int(np.sum(rows[:, 4] > 0))
    since = float(rows[fine, 0] if past == "revise" else model.knots[-1])
    seen = [cloud.marginals.diagnostics[name] for name in WINDOWS_TELL[3:]]
    facts = (rows[:, 2].tolist(), windows.middles.tolist(), windows.lengths.tolist(), *seen)
    told = {name: values[fine:] for name, values in zip(WINDOWS_TELL, facts, strict=True)}
    knots = inside if knots is None else knots
    return Batch(model.particles, since, marginals, knots, times, told, old - fine, rows)


def _times_of(axis: TimeAxis, rows: Floats, listed: bool) -> Floats:
    """Times of interest of a batch with later windows (K, ..): as declared, or ends and middles."""
    if listed or axis.declared or len(rows) == 0:
        return axis.times
    return np.union1d((rows[:, 0] + rows[:, 1]) / 2, rows[:, 1])


# Anything else ------------------------------------------------------------------------------------


def _alone(model: TrajectoryModel, recipe: Recipe) -> Recipe:
    """As a batch is fitted by itself: in few windows, as it is short beside the whole."""
    if model.diagnostics.get("listed_times") or recipe.windows != "auto":
        return recipe
    return recipe.again(windows=2)


def _fitted(model: TrajectoryModel, guard: Guard, task: Task, past: Past) -> Batch:
    """The batch by itself. At known times its curves take the place of as many old ones as the
    precision of both says, each of the one that is nearest."""
    axis, known, m = task.public.axis, float(model.knots[-1]), model.particles.shape[1]
    if not axis.declared:  # it is read where its windows end
        middle = np.append(axis.range, axis.range.mean())
        axis = TimeAxis(np.sort(middle), axis.datetime, axis.range, declared=False)
        task = task._replace(public=replace(task.public, axis=axis))  # type: ignore[type-var]
    measure = TrajectorySynthesizer.of(task.recipe).measure_for(task.public.axes)
    found = measure.fit(guard, task)
    knots = axis.times if found.knots is None else found.knots
    cloud, windows = found.marginals, found.windows
    told = {name: list(model.diagnostics.get(name) or []) for name in WINDOWS_TELL[:3]}
    people = np.asarray(told[WINDOWS_TELL[0]], np.float64)
    middles = np.asarray(told[WINDOWS_TELL[1]], np.float64)
    old, here = model.particles, (model.knots >= axis.range[0]) & (model.knots <= axis.range[1])
    if past == "revise" and here.any() and len(people) == len(middles):
        inside = (middles >= axis.range[0]) & (middles <= axis.range[1])
        if not inside.any():
            inside[np.abs(middles - axis.range.mean()).argmin()] = True
        both = np.array([people[inside].sum(), found.people[windows.middles <= known].sum()])
        weight = both**2 / (both + USUAL_NOISE / task.recipe.epsilon)
        some = systematic(np.ones(m), round(m * weight[1] / weight.sum()), task.rng)
        basis = hat_functions(np.clip(model.knots[here], knots[0], knots[-1]), knots)
        fresh = np.einsum("qk,kmd->qmd", basis, equal_weight(cloud.particles, cloud.weights, m))
        nearest = _going_on(old[here][-1], fresh[-1]) if model.curves else np.arange(m)
        old = old.copy()
        old[np.flatnonzero(here)[:, None], some] = fresh[:, nearest[some]]
        people[inside] *= 1 + both[1] / max(both[0], 1.0)
    later = windows.middles > known
    told[WINDOWS_TELL[0]] = people.tolist()
    for name, more in zip(told, (found.people, windows.middles, windows.lengths), strict=True):
        told[name] += more[later].tolist()
    counted = model.counted if axis.range[1] <= known else NOT_COUNTED  # of other times
    return Batch(old, known, cloud, knots, axis.times, told, len(middles), counted)


# The grown model ----------------------------------------------------------------------------------


def _joined(model: TrajectoryModel, made: Batch, certificate: Certificate) -> TrajectoryModel:
    """The old particles up to `since`, and behind them those of the batch."""
    fresh, knots, near = made.marginals, made.knots, 1e-9 * model.scale.length
    revised = made.since < model.knots[-1]
    kept = model.knots < made.since - near if revised else model.knots <= made.since + near
    new = knots > (model.knots[kept][-1] + near if kept.any() else -np.inf)
    times, last = made.times, model.numeric_times[-1] + near
    times = np.append(model.numeric_times, times[times > last])
    particles, weights = fresh.particles.astype(np.float32).astype(np.float64), fresh.weights
    if particles.shape[1] != (m := model.particles.shape[1]):
        particles, weights = equal_weight(particles, weights, m), np.full((len(knots), m), 1 / m)
    if not model.curves:
        order = along_main_axis(particles)
        particles = np.take_along_axis(particles, order[..., None], axis=1)
        weights = np.take_along_axis(weights, order, axis=1)
    elif kept.any():
        end = np.clip(model.knots[kept][-1:], knots[0], knots[-1])
        seam = np.einsum("k,kmd->md", hat_functions(end, knots)[0], particles)
        particles = particles[:, _going_on(made.old[kept][-1], seam)]
    told, numbers = dict(model.diagnostics), made.replaced
    for name, values in made.diagnostics.items():
        before = told.get(name)
        told[name] = [*before[: len(before) - numbers], *values] if before else values
    return replace(
        model,
        particles=np.concatenate([made.old[kept], particles[new]]),
        weights=np.concatenate([model.weights[kept], weights[new]]),
        bandwidth=np.concatenate([model.bandwidth[kept], fresh.bandwidth[new]]),
        knots=np.concatenate([model.knots[kept], knots[new]]),
        numeric_times=times,
        diagnostics=told,
        settings={**model.settings, "windows": len(told["people_per_time"])},
        certificate=certificate,
        counted=made.counted,
    ).sealed()


def _going_on(ends: Floats, begins: Floats) -> Ints:
    """Which curve of those that begin (m, d) goes on from each that ends (m, d), with the least
    transport; of many, among those that are next to each other along the main axis."""
    order = np.empty(len(ends), np.int64)
    a, b = (along_main_axis(cloud[None])[0] for cloud in (ends, begins))
    for start in range(0, len(ends), MATCHED):
        one, other = a[start : start + MATCHED], b[start : start + MATCHED]
        order[one] = other[matched(ends[one], begins[other])]
    return order


def _certificate(
    model: TrajectoryModel,
    snapshots: Snapshots,
    paid: Certificate,
    made: Batch,
    claim: dict[str, Any],
) -> Certificate:
    """What all batches paid, as a tree; what is public of all of them.  claim: in how many batches
    people of this one are, as `batch` takes it."""
    before, axis = model.certificate, snapshots.axis
    old, new = before.public_inputs, snapshots.public_inputs()
    (first, last), when = old["time range"], new["time range"]
    today = dt.datetime.now(dt.UTC).date().isoformat()
    one = batch((first, last), before.budget, released=before.declared.get("date", ""))
    batches = [*(old.get(BATCHES) or [one]), batch(when, paid.budget, **claim, released=today)]
    public = {**old, BATCHES: batches}
    if axis.range[1] > model.knots[-1]:
        last = when[1]
    public["time range"] = [first, last]
    public.pop("bin times", None)
    for name in (STATED, CHECKED):
        said = [*old.get(name, []), *new.get(name, [])]
        if name == STATED and claim.get("people", "").startswith("stated"):
            said.append(NEW_PEOPLE)
        if said:
            public[name] = list(dict.fromkeys(said))
    windows = len(made.diagnostics["people_per_time"])
    found = {**before.found, "resolution in time": f"{windows} windows of the last batches"}
    found.pop(CAUTION, None)
    people = float(sum(made.diagnostics["people_per_time"])) or None
    for warning in weaknesses(0.0, paid.delta, people)[:1]:
        found[CAUTION] = warning
    both = [before, paid]
    apart = claim.get("most", 0) != 0
    return certify_disjoint(both, public_inputs=public, disjoint=apart, found=found)
