"""What a batch releases, and how it is read together with what a model has released before.

Counts.  The model keeps the noisy counts of its windows (`Record.counted`). Cells and windows of
the batch are decided from the old model, so that all of epsilon buys counts. Then old and new
counts together are what one fit with these windows would have measured, as its windows hold
different people too, and they are read as one fit reads them (`Counts.clouds`).
    more people at a known window: of N_i people with noise v_i in occupied cells C, shares c_i /
    N_i are averaged by their precision  N_i^2 / (N_i + C v_i).
    noise of different size: counts are scaled to the same, people too, which leaves shares alone
    and weighs windows as their noise says.
    windows that are long past are kept as one sum, so that a batch takes the time of its own
    records however many there were.
What a stream loses to one fit is that noise is drawn for every batch: where people rest, K batches
have sqrt(K) times the noise of one. Noise that later batches take back (trees, factorisations)
gains nothing over 24 of them: trees of Laplace noise need 5 levels, Gaussian noise at epsilon 1 has
7 times the variance.

Anything else (gradients, tables, models without counts) is one fit of the batch and of as many
people as the model has seen, drawn from its last fit (`WithPast`): they are public, and each fit
adds its noise to everybody so far instead of to 1/K of them. The model keeps them
(`Record.past_people`), as a published past that stays would keep the noise of batch k with a weight
of 1 / (k (k + 1)) for good, where 1/K is best. What is too weak to stand out in one batch is lost.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from privtraj.base.arrays import Floats, Ints, total_variance
from privtraj.base.errors import Arg, InputError
from privtraj.base.space import Slabs, TimeAxis, as_user_times, hat_functions, unit_time
from privtraj.columns.kinds import encoded, to_unit
from privtraj.data.snapshots import Snapshots
from privtraj.domain.walking import within
from privtraj.measures.base import (
    NOT_COUNTED,
    Marginals,
    Task,
    left,
    reference_of,
)
from privtraj.measures.cells import spread_out
from privtraj.measures.counts import CELLS, MOST_REMEMBERED, Counts, expected_error
from privtraj.measures.numbers import READINGS, through_windows
from privtraj.measures.windows import (
    WINDOW_NOISE,
    Resolution,
    WindowChoice,
    bendings,
    looked,
    possible_motions,
)
from privtraj.model.model import TrajectoryModel
from privtraj.motion.process import Scale
from privtraj.privacy import noise
from privtraj.privacy.events import LaplaceCounts, Person
from privtraj.privacy.guard import (
    CellCounts,
    Guard,
    Laplace,
    Release,
)
from privtraj.privacy.ledger import BudgetPlan, Planned, calibrate_laplace
from privtraj.recipe import Recipe
from privtraj.synthesizer import TrajectorySynthesizer

WORK = 2**17
"""Cells and particles of all windows that are kept one by one, which bounds the time that a batch
takes; the windows before them are kept as their sum."""
MOMENTS = 8
"""That stand for the time of a window."""
PEOPLE = ("people_per_time", "people_middles", "people_lengths")
"""What a model tells of its windows."""
Past = Literal["keep", "revise"]


class Batch(NamedTuple):
    """What is made of a batch and an old model.

    since: up to when particles of the model stay.  marginals, knots: of curves that go on from
    there.  times: of interest.
    diagnostics: of windows.  replaced: how many of the model's last windows they stand for.
    people: of the batch, as they were counted with noise.
    """

    since: float
    marginals: Marginals
    knots: Floats
    times: Floats
    diagnostics: dict[str, list[Any]]
    replaced: int
    counted: Floats = NOT_COUNTED
    people: float = 0.0
    past_people: Floats = NOT_COUNTED


def counts_on(model: TrajectoryModel, maker: TrajectorySynthesizer, snapshots: Snapshots) -> bool:
    """Whether new counts can be combined with those of the model."""
    if not model.counted.size:
        return False
    if maker.measure_for(snapshots.axes).name != Counts.name:
        return False
    return bool(snapshots.axis.range[0] >= model.counted[model.counted[:, 4] == 0, 0].min())


def plan_counts(recipe: Recipe, person: Person) -> BudgetPlan:
    """One release: counts of cells, for all of the budget."""
    budget = recipe.epsilon, recipe.delta, recipe.adjacency
    epsilon = min(calibrate_laplace(*budget, person=person), noise.EPSILON_RANGE[1])
    if epsilon == 0:
        raise Counts().nothing_left()
    return BudgetPlan((Planned(LaplaceCounts(epsilon, CELLS, 0.0, *person, person.weight)),))


# Counts -------------------------------------------------------------------------------------------


def counted(model: TrajectoryModel, guard: Guard, task: Task, past: Past) -> Batch:
    """Counts of the batch, read together with those that the model keeps."""
    axis, plot, d = task.public.axis, task.public.plot, len(model.bounds)
    listed, old = bool(model.diagnostics.get("listed_times")), model.counted.copy()
    edges = _new_edges(model, axis, task.recipe.epsilon, past)
    if len(edges) and listed:
        old[-1, 1] = edges[0]
    elif len(edges):  # curves bend alike in windows that are about as long
        kept = [old[0]]
        for row in old[1:]:
            if row[1] - kept[-1][0] <= (edges[1] - edges[0]) * (1 + 1e-9):
                kept[-1] = _as_one(kept[-1], row)
            else:
                kept.append(row)
        old = np.array(kept)
    epsilon = min(left(guard, calibrate_laplace), noise.EPSILON_RANGE[1])
    lengths = np.ones(len(old)) if listed else old[:, 1] - old[:, 0]
    in_window = 1.0 if listed or not len(edges) else edges[1] - edges[0]
    old = _refined(old, model, in_window * old[:, 2].sum() / lengths.sum(), epsilon)
    rows = np.concatenate([old, np.zeros((max(len(edges) - 1, 0), old.shape[1]))])
    rows[len(old) :, 0], rows[len(old) :, 1] = edges[:-1], edges[1:]
    first = int(np.sum(rows[:, 1] <= axis.range[0]))  # windows that the batch is in, to the last
    last = int(np.sum(rows[:, 0] < axis.range[1]))
    windows, side = Slabs.between(rows[first + 1 : last, 0]), round((old.shape[1] - 5) ** (1 / d))
    release = Release(CellCounts(side), Laplace(epsilon), CELLS)
    answer = guard.in_slabs(windows).ask(release).astype(np.float64)

    # all that follows is post-processing
    if guard.in_slabs(windows).shape.person.weight:
        epsilon = Laplace(epsilon).of_parts
    held = answer if plot is None else answer[:, plot.cells(side, d).ravel()]
    total = np.maximum(held.sum(axis=1), 1.0)
    in_use = len(np.unique((model.particles[-1] * side).astype(int), axis=0))
    for place, own, counts in zip(rows[first:last], total, answer, strict=True):
        both = np.array([[place[2], own], [place[3], noise.laplace_variance(epsilon)]])
        weight = both[0] ** 2 / np.maximum(both[0] + in_use * both[1], 1.0)  # nobody has none
        share = weight / weight.sum() / np.maximum(both[0], 1.0) * both[0].sum()
        place[2:4] = both[0].sum(), share**2 @ both[1]
        place[5:] = share[0] * place[5:] + share[1] * counts
    return _read(model, rows, len(old), epsilon, task, past)._replace(people=float(total.sum()))


def _as_one(row: Floats, later: Floats) -> Floats:
    """Two windows that follow each other, as one: their sums."""
    return np.concatenate([row[:1], later[1:2], row[2:] + later[2:]])


def _most(model: TrajectoryModel, rows: Floats) -> int:
    """Windows that are kept one by one: the work of each is that of its cells and its particles."""
    return max(WORK // (rows.shape[1] + READINGS * model.particles.shape[1]), 8)


def _refined(rows: Floats, model: TrajectoryModel, people: float, epsilon: float) -> Floats:
    """The counts in cells of half the side, or a quarter and so on: those of a cell are spread
    evenly over its parts, of which they say nothing. So the people of one window alone, in such
    cells, have to promise a smaller error than all people together in cells as they are, whose
    windows, averaged, have the noise of sqrt(people of a window times people of all)."""
    d, side = len(model.bounds), round((rows.shape[1] - 5) ** (1 / len(model.bounds)))
    everybody, weights = model.particles.reshape(-1, d), model.weights.ravel() / len(model.knots)
    area = (12 * total_variance(everybody, weights) / d) ** (d / 2)  # as a fit of all would see it
    budget, together = (d, epsilon, area), np.sqrt(people * (people + rows[:, 2].sum()))
    while expected_error(2 * side, people, *budget) < expected_error(side, together, *budget):
        if len(rows) * (2 * side) ** d > MOST_REMEMBERED:
            break
        cells = spread_out(rows[:, 5:].reshape(-1, *(side,) * d), 1) / 2**d
        rows = np.hstack([rows[:, :5], cells.reshape(len(rows), -1)])
        rows[:, 3] /= 2**d
        side *= 2
    return rows


def _new_edges(model: TrajectoryModel, axis: TimeAxis, epsilon: float, past: Past) -> Floats:
    """Of windows at later times: each listed time, or as many as motion and noise suggest.

    Curves are straight within a window of length h and hide D^2 / 720 of the motion, D = a h^2
    being its second difference, and D^2 / 64 at an end that is published before people go on. A
    window costs a noise of c V / (people epsilon) (`measures.windows`), and D of w windows is w^-2
    of one's: the sum is least at w^5 = 4 D^2 people epsilon / (720 c V), or 64. D is that of the
    past; of its noise alone one window is made.
    """
    known, (start, end) = float(model.knots[-1]), axis.range
    if end <= known:
        return np.empty(0)
    if model.diagnostics.get("listed_times"):
        times = np.append(known, axis.times[axis.times > known])
        if not axis.declared or len(times) == 1:
            raise InputError(
                "people of this model are at listed times: give ",
                Arg("bins"),
                ", the times of the batch",
            )
        return np.append((times[:-1] + times[1:]) / 2, times[-1])
    start, d, rows = max(float(start), known), len(model.bounds), model.counted
    length = min(end - start, model.scale.length / 2)
    basis = hat_functions(known - length * np.arange(3.0), model.knots)
    turn = np.einsum("k,kmd->md", basis[0] - 2 * basis[1] + basis[2], model.particles)
    turned = float(np.mean(np.sum(turn**2, axis=1))) * ((end - start) / length) ** 4
    spread = WINDOW_NOISE * d**2 * total_variance(model.particles[-1], model.weights[-1])
    people = (end - start) * rows[:, 2].sum() / np.diff(rows[:, :2], axis=1).sum()
    hidden = turned / (64 if past == "keep" else 720)
    wanted = (4 * hidden * people * epsilon / max(spread, 1e-6)) ** 0.2
    return np.linspace(start, end, int(np.clip(np.rint(wanted), 1, _most(model, rows) // 2)) + 1)


def _read(
    model: TrajectoryModel, rows: Floats, old: int, epsilon: float, task: Task, past: Past
) -> Batch:
    """Clouds and curves of windows, `old` of them windows of the model: of all that are kept one by
    one, or, where the past stays, of the last and the two before, which the curves go on from."""
    listed = bool(model.diagnostics.get("listed_times"))
    while len(rows) > _most(model, rows) + 1:  # the two that are longest past become one
        rows[1], rows[1, 4] = _as_one(*rows[:2]), 1.0
        rows, old = rows[1:], old - 1
    axis, d, fine = task.public.axis, len(model.bounds), int(np.sum(rows[:, 4] > 0))
    first = fine if past == "revise" else max(fine, old - 2)
    own, later = axis.times, rows[old:]
    if not (listed or axis.declared) and len(later):  # ends and middles of windows
        own = np.union1d(later[:, :2].mean(axis=1), later[:, 1])
    times = np.union1d(model.numeric_times, own)
    inside = times[(times >= rows[0, 0]) & (times <= rows[-1, 1])]
    if listed:
        moments = inside
        of_moment = np.minimum(np.searchsorted(rows[:, 1], moments), len(rows) - 1)
    else:
        shares = (np.arange(MOMENTS) + 0.5) / MOMENTS
        moments = (rows[:, :1] + shares * np.diff(rows[:, :2], axis=1)).ravel()
        moments[[first * MOMENTS, -1]] = rows[first, 0], rows[-1, 1]
        of_moment = np.repeat(np.arange(len(rows)), MOMENTS)
    scale = np.sqrt(noise.laplace_variance(epsilon) / rows[:, 3])
    people, counts = scale * rows[:, 2], scale[:, None] * rows[:, 5:]
    side, variance = round(counts.shape[1] ** (1 / d)), noise.laplace_variance(epsilon)
    seen, at = looked(counts, side, d, variance), unit_time(moments, moments)
    seen = seen._replace(values=seen.values * (people.mean() / people))
    cost = WINDOW_NOISE * d**2 * seen.variance * len(rows) / (people.sum() * epsilon)
    motions = possible_motions(seen, at, of_moment)
    stiffer = bendings(motions, at, of_moment, seen.variance, cost, listed)
    choice = WindowChoice(of_moment, 0.0, cost, seen.variance, np.zeros(5), stiffer)
    windows = Resolution(moments, listed, of_moment, choice)
    cloud = Counts().clouds(counts, side, epsilon, people, windows, task, first)
    windows, inside = windows.since(first), inside[inside >= rows[first, 0]]
    joint = TimeAxis(inside, axis.datetime, windows.moments[[0, -1]], axis.declared)
    task = task._replace(public=replace(task.public, axis=joint))  # type: ignore[type-var]
    scale_now = Scale(model.bounds, float(windows.moments[0]), float(np.ptp(windows.moments)))
    unit, still = reference_of(task.recipe).within(scale_now), np.array(task.public.axes.fixed)
    marginals, knots = through_windows(cloud.marginals, windows, task, unit, still)
    if task.public.plot is not None:
        marginals = within(task.public.plot, marginals)
    since = float(rows[fine, 0] if past == "revise" else model.knots[-1])
    facts = rows[first:, 2].tolist(), windows.middles.tolist(), windows.lengths.tolist()
    told = cloud.marginals.diagnostics | dict(zip(PEOPLE, facts, strict=True))
    knots = inside if knots is None else knots
    replaced = int(np.sum(np.array(model.diagnostics[PEOPLE[1]]) >= rows[first, 0]))
    return Batch(since, marginals, knots, times, told, replaced, rows)


# Anything else ------------------------------------------------------------------------------------


def with_past(model: TrajectoryModel, snapshots: Snapshots, seed: int | None) -> Snapshots:
    """The batch and as many people of the model as it knows of, or as there is room for; each of
    them is recorded once, at a time of one window. Those that the last batch left (`fitted`) stand
    for what was known then of all times, whatever of it was published."""
    people = model.past_people if model.past_people.size else _past_people(model, seed)
    points = people[:, 1:].astype(np.float32)
    return in_all_time(model, snapshots).beside(points, people[:, 0])


def _past_people(model: TrajectoryModel, seed: int | None) -> Floats:
    """(n, 1 + d) times and places, in the unit cube, of people of all windows of a model."""
    rng, (start, end) = np.random.default_rng(seed), model.knots[[0, -1]]
    many, middles, lengths = drawn_people(model)
    when = np.clip(middles, start, end)
    if model.diagnostics.get("listed_times"):  # windows are of one time or of several
        nearest = np.abs(when[:, None] - model.numeric_times).argmin(axis=1)
        when, lengths = model.numeric_times[nearest], 0 * lengths
    moments, moment = np.unique(when, return_inverse=True)
    window, each = np.repeat(np.arange(len(many)), many), np.arange(many.sum())
    asked = as_user_times(moments, model.datetime)
    drawn = model.sample(max(len(each), 1), asked, seed=seed).values[each, moment[window]]
    points = to_unit(model.columns, encoded(model.columns, drawn))
    times = np.clip(when[window] + lengths[window] * (rng.random(len(each)) - 0.5), start, end)
    return np.column_stack([times, points])


def drawn_people(model: TrajectoryModel) -> tuple[Ints, Floats, Floats]:
    """How many are drawn in each window; its middle, and its length."""
    told = [np.asarray(model.diagnostics.get(one) or [], float) for one in PEOPLE]
    if not len(told[0]) == len(told[1]) == len(told[2]) > 0:  # a model that tells nothing of them
        return np.zeros(1, np.int64), model.knots[:1], np.zeros(1)
    people, middles, lengths = told
    room = MOST_REMEMBERED / (len(people) * len(model.columns))
    share = min(1.0, room / max(float(people.sum()), 1.0))
    return np.rint(share * people).astype(np.int64), middles, lengths


def in_all_time(model: TrajectoryModel, snapshots: Snapshots) -> Snapshots:
    """The batch with the times of the model before its own; in bins of both together, records of
    a person may meet."""
    axis, (start, end) = snapshots.axis, model.knots[[0, -1]]
    own = axis.times if axis.declared else np.append(axis.range, axis.range.mean())
    times, both = np.union1d(model.numeric_times, own), np.array([start, max(end, axis.range[1])])
    joint = TimeAxis(times, axis.datetime, both, axis.declared)
    return replace(snapshots, axis=joint, together=snapshots.records_per_person > 1)


def fitted(model: TrajectoryModel, guard: Guard, task: Task, past: Past, axis: TimeAxis) -> Batch:
    """One fit of the batch, recorded as the axis says, and of people of the model."""
    measure = TrajectorySynthesizer.of(task.recipe).measure_for(task.public.axes)
    found = measure.fit(guard, task)
    knots = task.public.axis.times if found.knots is None else found.knots
    (start, end), known = axis.range, float(model.knots[-1])
    told = {name: list(model.diagnostics.get(name) or []) for name in PEOPLE}
    before, middles = np.asarray(told[PEOPLE[0]]), np.asarray(told[PEOPLE[1]])
    replaced, drawn = len(before), drawn_people(model)[0].sum()
    people = max(float(found.people.sum() - drawn), 1.0)
    if end > known:
        first = max(start, known)
        for name, value in zip(told, (people, (first + end) / 2, end - first), strict=True):
            told[name].append(float(value))
    else:
        inside = (middles >= start) & (middles <= end) | (len(middles) == 1)
        before[inside] *= 1 + people / max(before[inside].sum(), 1.0)
        told[PEOPLE[0]] = before.tolist()
    since = known if past == "keep" else float(model.knots[0])
    times, (particles, weights, width) = task.public.axis.times, found.marginals[:3]
    batch = Batch(since, found.marginals, knots, times, told, replaced, people=people)
    if model.counted.size and end <= known:  # of all times
        return batch._replace(counted=model.counted)
    of_all = replace(
        model,
        particles=particles,
        weights=weights,
        bandwidth=width,
        knots=knots,
        numeric_times=times,
        diagnostics=model.diagnostics | told,
    )
    return batch._replace(past_people=_past_people(of_all, int(task.rng.integers(2**31))))
