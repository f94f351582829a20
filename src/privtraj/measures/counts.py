"""A fit by counts: one private histogram per time, and inference from it at no further cost.

    survey    how concentrated people are: how fine cells may be
    measure   noisy counts of the cells of every time: all else that is paid for
    average   counts over time, as far as people stay (`over_time`)
    infer     the cells that noise would hardly have produced (`cells`)
    couple    masses that agree with the counts and travel little between times (`over_time`)
    smooth    people inside the cells, and particles that stand for them (`cells`)

The width of the people is that of an even cloud of the same variance, as the look at motion shows
it (`windows`), or, where windows are set by hand, a survey: the same coarse counts, for less.

The side of the cells is that of the least estimated error. With G cells a side, squared W2 to
expect from N people at epsilon, if they occupy a part of the box of width s (in units of
`USUAL_WIDTH`, at most 1), is
    E(G) = d / (24 G^2)  +  c_d s^2 sqrt((s G)^d) / (N epsilon).
The first term is what cells hide. The second is noise: the cells around people draw noise of
sqrt((s G)^d) / epsilon people together, a share of all people that is carried over a squared
distance c_d s^2: c_d = sqrt(2) d w^2 / 12, w = `USUAL_WIDTH`, is the variance of people who are
even over w, times the deviation sqrt(2) of the noise of a cell. Concentrated people in a large box
are as others in a small one, hence the s. Curves have a share |S|^2 / M of the noise of windows
(`windows`), so N is the people of a window over the root of it. E is smooth in N epsilon, so more
people or more budget never cross a jump of the rule.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats
from privtraj.base.errors import Arg, InputError
from privtraj.measures.base import (
    HEAD_COUNT,
    Marginals,
    Public,
    Task,
    left,
    planned_event,
    shrunk_counts,
)
from privtraj.measures.cells import (
    MOST_CELLS_PER_TIME,
    bandwidths,
    estimate,
    placed,
    smoothed,
)
from privtraj.measures.numbers import CURVES, PARTICLES_PER_CURVE, Measured, Numbers, View
from privtraj.measures.over_time import pooled_over_time
from privtraj.measures.persistence import PERSISTENCE
from privtraj.measures.windows import MOTION_SHARE, Resolution, look
from privtraj.motion.population import APART
from privtraj.privacy.events import LaplaceCounts, Person
from privtraj.privacy.guard import MAX_CELLS, CellCounts, Laplace, Release
from privtraj.privacy.ledger import Planned, calibrate_laplace
from privtraj.privacy.noise import EPSILON_RANGE, laplace_variance
from privtraj.recipe import Recipe

# "Stand-ins" are the simulated data sets of `privtraj.datasets`; docs/benchmark.md has what the
# whole reaches on them and on data that no number was set on. N: people per time.  d: features.
CELLS = "people per cell"
SURVEY = "how concentrated people are"
USUAL_WIDTH = 0.3  # of people, in sides of the box; wider ones want no other cells, same sweep
RELEASED_PARTICLES = 256  # at each time; set by hand, 2026-11
MOST_REMEMBERED = 2**21  # counts that a model keeps for later batches, 16 MB; set by hand, 2026-11

_SIDES = (*range(2, 12, 2), *range(12, 64, 4), *range(64, 513, 16))  # even, so that counts pool


class Counts(Numbers):
    """Private counts of cells, with Laplace noise: no delta is needed."""

    name = "counts"
    words = "private counts of records over cells"
    needs_delta = False
    quick = True

    def refuses(self, public: Public, recipe: Recipe) -> None:
        super().refuses(public, recipe)
        if recipe.cells is None:
            return
        least = len(public.axis.times) if recipe.windows == "bins" else 2
        features = public.shape.n_features
        cells = least * recipe.cells**features
        if cells > MAX_CELLS:
            raise InputError(
                Arg("cells", recipe.cells),
                f" makes {cells} cells in {features} dimensions at "
                f"{least} times: use fewer cells, or ",
                Arg("measure", "gradients"),
            )

    def looks(self, recipe: Recipe) -> dict[str, float]:
        # a look at motion shows how concentrated people are as well
        asked = recipe.cells is None and recipe.windows != "auto"
        return {SURVEY: MOTION_SHARE} if asked else {}

    def main(self, recipe: Recipe, person: Person, others: list[Any]) -> Planned | None:
        budget = recipe.epsilon, recipe.delta, recipe.adjacency
        epsilon = calibrate_laplace(*budget, others=others, person=person)
        if epsilon == 0:
            return None
        cells = LaplaceCounts(min(epsilon, EPSILON_RANGE[1]), CELLS, 0.0, *person, person.weight)
        return Planned(cells, shared=True)

    def main_releases(self, steps: int) -> dict[str, int]:
        return {SURVEY: 1, CELLS: 1}

    def measured(self, view: View, people: Floats, task: Task) -> Measured:
        """What the main release may spend is fixed by the budget alone; only how it is spent
        follows from the released number of people."""
        guard, recipe, plot, d = view.guard, task.recipe, task.public.plot, view.guard.n_features
        survey = planned_event(task.plan, SURVEY)
        seen = view.windows.choice if survey is None else look(guard, survey)
        area = 1.0 if seen is None else (12 * seen.variance / d) ** (d / 2)  # of an even cloud
        most = left(guard, calibrate_laplace, planned_event(task.plan, PERSISTENCE))
        epsilon = min(most, EPSILON_RANGE[1])
        shared = 1.0  # of the noise, by curves
        if view.windows.choice is not None and len(view.windows.choice.stiffer):
            shared = float(view.windows.choice.stiffer[0, 2])
        enough = float(np.median(people)) / math.sqrt(shared)  # people with as much noise
        side = recipe.cells or cells_per_side(enough, d, epsilon, area)
        counts = guard.ask(Release(CellCounts(side), Laplace(epsilon), CELLS))

        # all that follows is post-processing
        if guard.shape.person.weight:
            epsilon = Laplace(epsilon).of_parts
        held = counts if plot is None else counts[:, plot.cells(side, d).ravel()]
        head = planned_event(task.plan, HEAD_COUNT)
        total, variance = people, 0.0
        if head is not None:  # with the sum of all cells, each weighted by the other's noise
            of_head = laplace_variance(head.epsilon)
            of_cells = held.shape[1] * laplace_variance(epsilon)
            summed = shrunk_counts(held.sum(axis=1).astype(np.float64), of_cells)
            both = of_cells + of_head
            total = (people * of_cells + summed * of_head) / both
            variance = of_cells * of_head / both
        elif guard.shape.person.weight:  # public are the numbers of records
            total = shrunk_counts(held.sum(axis=1), held.shape[1] * laplace_variance(epsilon))
        made = self.clouds(counts, side, epsilon, total, view.windows, task)
        made.marginals.diagnostics["people_noise"] = math.sqrt(variance)
        if counts.size > MOST_REMEMBERED:
            return made
        windows, alike = view.windows, np.ones(len(total))
        ends = np.concatenate([windows.moments[:1], windows.edges, windows.moments[-1:]])
        facts = (ends[:-1], ends[1:], total, alike * laplace_variance(epsilon), 0 * alike)
        return made._replace(counted=np.column_stack([*facts, counts]))

    def clouds(
        self,
        counts: NDArray[Any],
        side: int,
        epsilon: float,
        total: Floats,
        windows: Resolution,
        task: Task,
        first: int = 0,
    ) -> Measured:
        """The clouds behind counts (K, side ** d), noisy at epsilon, of people (K,), in the windows
        from the first on, for which those before count only as far as people stay."""
        recipe, plot, d = task.recipe, task.public.plot, round(math.log(counts.shape[1], side))
        inside = None if plot is None else plot.cells(side, d)
        coupling = 1.0 if recipe.time_coupling is None else recipe.time_coupling
        gaps = np.diff(windows.centres)
        together = gaps if coupling > 0 else None
        measure = estimate(counts, side, epsilon, total, d, together, inside)
        if first:
            measure, total, gaps = measure.since(first), total[first:], gaps[first:]
        mean, in_cells = float(total.mean()), np.count_nonzero(measure.weights, axis=1).mean()
        # people whose shares chance alone would make as uncertain: N / (1 + cells variance / N)
        effective = mean / (1 + float(in_cells) * laplace_variance(epsilon) / mean)
        reach = np.inf if recipe.growth is None else APART
        measure = pooled_over_time(measure, gaps, effective, coupling, reach)
        if windows.need_curves:
            released = recipe.particles or CURVES
            particles = PARTICLES_PER_CURVE * released
        else:
            released = particles = recipe.particles or RELEASED_PARTICLES
        if recipe.bandwidth is None:
            own = added = bandwidths(measure, released)
        else:  # added to particles that have all of the density
            own, added = np.zeros(len(total)), np.full(len(total), recipe.bandwidth)
        fine = smoothed(measure, own, None if plot is None else lambda n: plot.cells(n, d))
        clouds, weights = placed(fine, particles, task.rng, plot)
        told = {
            "significant_share": measure.significant.tolist(),
            "cell_side": measure.sides.tolist(),
            "people_per_time": total.tolist(),
        }
        width = measure.sides / math.sqrt(12)
        worth = float(np.median(total)) * epsilon / (2 * math.log(side**d))
        return Measured(Marginals(clouds, weights, added, width, told), worth, cells_per_side=side)


def cells_per_side(people: float, features: int, epsilon: float, area: float = 1.0) -> int:
    """The G with the least E within the number of cells allowed, an even number."""
    best, least = 2, math.inf
    for side in _SIDES:
        error = expected_error(side, people, features, epsilon, area)
        if side**features <= MOST_CELLS_PER_TIME and error < least:
            best, least = side, error
    return best


def expected_error(
    side: int, people: float, features: int, epsilon: float, area: float = 1.0
) -> float:
    """E, squared W2 in squared shares of the box."""
    width = min(1.0, area ** (1 / features) / USUAL_WIDTH)
    cost = math.sqrt(2) * features * (USUAL_WIDTH * width) ** 2 / 12
    noise = cost * (width * side) ** (features / 2) / (people * epsilon)
    return features / (24 * side**2) + noise
