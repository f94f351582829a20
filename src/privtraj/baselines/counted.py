"""Noisy counts of cells, points inside them, and our dynamics without noise on the records.

`PrivateMeasure` is that of He, Vershynin and Zhu, "Algorithmically effective differentially private
synthetic data" (2023), on the dyadic hierarchy of the cube: level j has 2^j cells a side, and 2^d
children in each cell. The dynamics have the same start in the middle of the box, the same annealing
and the same coupling of times as a fit by private gradients; the moments are exact: NOT PRIVATE.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from privtraj.base.arrays import Floats, Ints, systematic
from privtraj.base.errors import InputError
from privtraj.base.space import unit_time
from privtraj.baselines.base import Baseline, of_equal_weight, unguarded
from privtraj.columns.kinds import Axes
from privtraj.measures.base import Marginals, Public, Task, left
from privtraj.measures.cells import MOST_CELLS_PER_TIME
from privtraj.measures.langevin import (
    TIME_COUPLING,
    Fixed,
    MomentSource,
    gradient_schedule,
    middle,
    run,
)
from privtraj.measures.likelihood import Mixture, Moments, moments, person_vectors
from privtraj.paper.warm_starts import on_simplex
from privtraj.privacy import noise
from privtraj.privacy.certificate import Certificate
from privtraj.privacy.events import Event, LaplaceCounts, Opaque
from privtraj.privacy.guard import CellCounts, Guard, Laplace, Release
from privtraj.privacy.ledger import Ledger, Planned, calibrate_laplace
from privtraj.synthesizer import Budget

CELLS = "people per cell"
CROWD = 5.0  # people times epsilon that a cell should hold
TINY = 1e-9  # people of a parent below which its children are as good as nobody


@dataclass(frozen=True, repr=False)
class Counted(Baseline):
    """A baseline that counts cells. cells: per side; None chooses it from the head count.

    Pure: with Laplace noise nothing of delta is used.
    """

    releases: ClassVar[int] = 1
    """Counts of everybody at most."""

    @property
    def counts_people(self) -> bool:
        return self.cells is None

    def main(self, public: Public, others: list[Event]) -> Planned:
        person = public.shape.person
        epsilon = calibrate_laplace(*self.budget, others=others, person=person)
        cells = LaplaceCounts(min(epsilon, noise.EPSILON_RANGE[1]), CELLS, 0.0, *person)
        return Planned(cells, self.releases, shared=True)

    def _left(self, guard: Guard) -> float:
        """The epsilon of one more noisy count of everybody, in the noise's own units."""
        return min(left(guard, calibrate_laplace), noise.EPSILON_RANGE[1])


@dataclass(frozen=True, repr=False)
class ThresholdedHistogram(Counted):
    """Per time a histogram on G^d cells with discrete Laplace noise; keep what stands out.

    Mechanism: noise P(x) ~ exp(-e |x|) on every count; cells with a noisy count above
    log(G^d) / e are kept, on average fewer than one of those without anybody; people are uniform
    inside the kept cells, in proportion to the noisy counts. Nothing kept: uniform on the box.
    Sensitivity: a record is in one cell of one time, so a person with one record added or removed
    moves one count by 1 (e = epsilon), a person replaced two (e = epsilon / 2). G by hand costs
    nothing; otherwise `grid`, from a head count that is paid for.
    """

    def made(self, guard: Guard, task: Task, people: Floats) -> Marginals:
        epsilon = self._left(guard)
        side = self.cells or grid(float(np.median(people)), guard.n_features, epsilon)
        counts = guard.ask(Release(CellCounts(side), Laplace(epsilon), CELLS))
        threshold = math.log(counts.shape[1]) / epsilon
        kept = np.where(counts > threshold, counts, 0).astype(np.float64)
        return in_cells(occupied(kept, side, guard.n_features), side, self.points, task.rng)


@dataclass(frozen=True, repr=False)
class PrivateMeasure(Counted):
    """Counts at every level of a dyadic hierarchy with discrete Laplace noise, made consistent.

    Mechanism: level 0 is the head count, at count_share of epsilon (or public). Levels 1..r get
    noise P(x) ~ exp(-e_j |x|) with e_j as in `level_budgets`, negative counts become 0, and from
    the root down the counts of children are made to sum to their parent's (`consistent`). Points
    are uniform inside the leaves, 2^r a side, N e of them or about so (`depth`).
    Sensitivity: a record is in one cell of each level, so a person with one record added or removed
    moves one count per level by 1: sum e_j = epsilon; a person replaced moves two: sum e_j =
    epsilon / 2. cells: leaves per side, a power of two.
    """

    releases: ClassVar[int] = 24
    counts_people: ClassVar[bool] = True

    def main(self, public: Public, others: list[Event]) -> Planned:
        planned, d = super().main(public, others), public.shape.n_features
        if self.cells is not None:
            levels = self.cells.bit_length() - 1
            if level_budgets(planned.event.information, levels, d)[0] < noise.EPSILON_RANGE[0]:
                raise InputError(f"epsilon is too small for {levels} levels: use fewer cells")
        return planned

    def made(self, guard: Guard, task: Task, people: Floats) -> Marginals:
        budget, d = self._left(guard), guard.n_features
        levels = depth(float(np.median(people)), d, budget)
        while levels > 1 and level_budgets(budget, levels, d)[0] < noise.EPSILON_RANGE[0]:
            levels -= 1
        if self.cells is not None:
            levels = self.cells.bit_length() - 1
        mass = people[:, None]
        for level, epsilon in enumerate(level_budgets(budget, levels, d), start=1):
            drawn = Laplace(float(epsilon))
            counts = guard.ask(Release(CellCounts(2**level), drawn, CELLS))
            mass = consistent(mass, counts.astype(np.float64), d)
        return in_cells(occupied(mass, 2**levels, d), 2**levels, self.points, task.rng)

    def certified(self, *fit: Any, **more: Any) -> Certificate:
        """One entry for all levels, of their sum.

        How many levels there are, and the e_j with them, may follow from the head count. Then their
        sum holds, and one count of it dominates them all; exact composition of what happened to be
        chosen would promise a little too much.
        """
        snapshots, found, ledger, *private = fit
        events = [event for event, _ in ledger.events]
        levels = [event for event in events if event.what == CELLS]
        total = math.fsum(event.epsilon for event in levels)
        all_levels = replace(levels[0], epsilon=total, what=f"{CELLS} at {len(levels)} levels")
        stated = Ledger(*self.budget)
        for event in (*(event for event in events if event.what != CELLS), all_levels):
            stated.spend(event)
        return super().certified(snapshots, found, stated, *private, **more)

    def check(self) -> None:
        super().check()
        if self.cells is not None and self.cells & (self.cells - 1):
            raise InputError("cells must be a power of two: every level halves the cells")


def grid(people: float, dimensions: int, epsilon: float) -> int:
    """G = (N e / CROWD)^(1 / (1 + d/2)), at least 2, with at most 2^18 cells.

    Cells of CROWD / e people, if people fill a set of dimension 1 + d/2 of the box: a curve and a
    little more on a line, all of a plane, about half of the directions beyond.
    """
    wanted = (people * epsilon / CROWD) ** (1 / (1 + dimensions / 2))
    return max(2, round(min(wanted, MOST_CELLS_PER_TIME ** (1 / dimensions))))


def in_cells(
    cells: Sequence[tuple[Ints, Floats]],
    side: int,
    points: int,
    rng: np.random.Generator,
    axes: Axes | None = None,
) -> Marginals:
    """Points uniform inside cells drawn in proportion to their weights.

    cells: for each time, whole coordinates (J, d) and weights (J,); none: uniform on the box.
    side: cells per axis of a number; axes: by default all are numbers.
    """
    dimensions = cells[0][0].shape[1]
    sides = np.array((axes or Axes.numeric(dimensions)).sides(side))
    clouds, widths = [], []
    for places, weights in cells:
        corner, width = np.zeros((points, dimensions)), np.ones(dimensions)
        if len(places):
            corner, width = places[systematic(weights, points, rng)] / sides, 1 / sides
        clouds.append(corner + width * rng.uniform(size=corner.shape))
        widths.append(1 / side if len(places) else 1.0)
    return of_equal_weight(np.stack(clouds), np.array(widths) / math.sqrt(12))


def places_of(points: Floats, sides: Sequence[int]) -> Ints:
    """Whole coordinates (n, d) of the cells of points (n, d), of sides (d,) cells per axis."""
    return np.minimum((points * sides).astype(np.int64), np.array(sides) - 1)


def occupied(weights: Floats, side: int, dimensions: int) -> list[tuple[Ints, Floats]]:
    """The cells of positive weight, for `in_cells`; weights (T, side ** d), last axis fastest."""
    shape = (side,) * dimensions
    cells = []
    for row in weights:
        index = np.flatnonzero(row > 0)
        cells.append((np.stack(np.unravel_index(index, shape), axis=-1), row[index]))
    return cells


def depth(people: float, dimensions: int, epsilon: float) -> int:
    """r with 2^(d r) nearest to N e on the scale of logarithms: one or more, as far as allowed."""
    wanted = round(math.log2(max(people * epsilon, 2)) / dimensions)
    return int(np.clip(wanted, 1, max(1, int(math.log2(MOST_CELLS_PER_TIME) / dimensions))))


def level_budgets(epsilon: float, levels: int, dimensions: int) -> Floats:
    """e_j (r,) for levels 1..r, proportional to 2^{(d - 1) j / 2}, with sum epsilon.

    Noise of scale 1/e_j at each of the 2^{d j} cells of level j carries mass over the diameter
    2^{-(j - 1)} of its parent, so the error is proportional to sum_j 2^{(d - 1) j} / e_j; these
    e_j make it least for a given sum.
    """
    share = 2.0 ** ((dimensions - 1) / 2 * np.arange(levels))
    return epsilon * share / share.sum()


def consistent(parents: Floats, counts: Floats, dimensions: int) -> Floats:
    """Counts (T, G^d) made nonnegative, with children that sum to their parents (T, (G / 2)^d).

    All children of a cell grow or all shrink, as the theorem asks, which leaves open how. Here they
    shrink by one number, those below it to 0, which takes noise away where nobody is, and grow in
    proportion to their counts; children of whom none is counted get equal parts.
    """
    family = siblings(round(counts.shape[1] ** (1 / dimensions)), dimensions)
    children = np.maximum(counts, 0)[:, family]
    parent, total = parents[..., None], children.sum(axis=-1, keepdims=True)
    grown = np.where(total > 0, children / np.maximum(total, 1), 1 / children.shape[-1])
    rows = (children / np.maximum(parent, TINY)).reshape(-1, children.shape[-1])
    shrunk = on_simplex(rows).reshape(children.shape)
    mass = np.empty_like(counts)
    mass[:, family] = parent * np.where(total > parent, shrunk, grown)
    return mass


def siblings(side: int, dimensions: int) -> Ints:
    """((G / 2)^d, 2^d) the cells, of G a side, that have one parent."""
    cells = np.arange(side**dimensions).reshape((side // 2, 2) * dimensions)
    axes = (*range(0, 2 * dimensions, 2), *range(1, 2 * dimensions, 2))
    return cells.transpose(axes).reshape(-1, 2**dimensions)


# Dynamics without noise -----------------------------------------------------------------------

CELL_CHUNK = 256  # points whose vectors are held at a time
NOTHING_PROMISED = (1e6, math.nextafter(1.0, 0.0))
NO_NOISE = "none: NOT PRIVATE, the records were used as they are"


@dataclass(frozen=True, repr=False)
class NonPrivate(Baseline):
    """Mean-field Langevin dynamics on the records as they are. NOT PRIVATE.

    What our method would do if privacy cost nothing. The records do not go through the guard, and
    the certificate promises nothing: epsilon 10^6 at a delta of 1 - 2^-53, `private` False; such a
    model is saved only with not_private=True. epsilon and delta are accepted, because all baselines
    are called alike, and ignored.
    """

    _: KW_ONLY
    particles: int = 256
    steps: int = 60

    def main(self, public: Public, others: list[Event]) -> Planned:
        return Planned(Opaque(*NOTHING_PROMISED, "all records, as they are", self.adjacency))

    def made(self, guard: Guard, task: Task, people: Floats) -> Marginals:
        guard.ledger.spend(task.plan.releases[0].event)
        clouds, rng = unguarded(task.public), task.rng  # type: ignore[arg-type]
        when, times, d = task.public.axis.times, len(clouds), guard.n_features
        most = max(1, *map(len, clouds))
        # people of a time have equal weights; a time without any has one in the middle
        centres, parts = np.full((times, most, d), 0.5), np.zeros((times, most))
        for i, cloud in enumerate(clouds):
            centres[i, : len(cloud)] = cloud
            parts[i, : max(len(cloud), 1)] = 1 / max(len(cloud), 1)
        state, _ = run(
            middle(times, self.particles, d, rng),
            exact_moments(centres, parts),
            gradient_schedule(self.steps, TIME_COUPLING, d),
            Fixed.between(np.diff(unit_time(when, when))),
            rng,
        )
        mixture = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), state.mixture)
        mass = np.asarray(state.mass, np.float64)
        weights = mass / mass.sum(axis=1, keepdims=True)
        return Marginals(mixture.particles, weights, mixture.bandwidth, mixture.bandwidth, {})

    @property
    def budget(self) -> Budget:
        return (*NOTHING_PROMISED, self.adjacency)

    def certified(self, *fit: Any, **more: Any) -> Certificate:
        exact = super().certified(*fit, **more)
        return replace(exact, private=False, noise=NO_NOISE)


def exact_moments(centres: Floats, weights: Floats) -> MomentSource:
    """Moments of points (T, n, d) of weights (T, n) that stand in for the people, without noise."""
    times, count, dimensions = centres.shape
    room = (0, -count % CELL_CHUNK)
    padded = np.pad(centres, ((0, 0), room, (0, 0))).astype(np.float32)
    chunks = padded.reshape(times, -1, CELL_CHUNK, dimensions)
    parts = np.pad(weights, ((0, 0), room)).astype(np.float32).reshape(times, -1, CELL_CHUNK)
    return lambda mixture: _weighted_moments(chunks, parts, mixture)


@jax.jit
def _weighted_moments(
    centres: jax.Array, weights: jax.Array, mixture: Mixture
) -> tuple[Moments, jax.Array]:
    """Moments of weighted points: centres (T, n, CELL_CHUNK, d), weights (T, n, CELL_CHUNK)."""

    def one(given: tuple[jax.Array, jax.Array, Mixture]) -> jax.Array:
        *chunks, mixture = given
        return jax.lax.map(lambda c: c[1] @ person_vectors(c[0], mixture), chunks).sum(axis=0)

    sums = jax.lax.map(one, (centres, weights, mixture))
    ones = jnp.ones(len(centres), jnp.float32)
    return moments(sums, ones, mixture), jnp.zeros_like(ones)
