"""A fit by marginal tables: noisy tables of one and two columns, and particles that explain them.

    people      how many are in every slab of time, from which the number of cells follows
    alone       cells of each column, all times together: groups of cells follow from it
    over time   groups of each column in every slab of time
    pairs       groups of every two columns, all times together
    parts       the pairs that turned out to depend on each other, in parts of time

Every round is one release of several tables (`Guard.tables`), and the rounds share what the main
release may tell. Which pairs are measured again is decided by released tables alone: the choice
costs nothing. Time is a column like others, so a person of any time tells about every pair, and
particles carry what is known from slab to slab (`particles`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from privtraj.arrays import Floats, Ints
from privtraj.columns.axes import Axes
from privtraj.marginal_tables import groups
from privtraj.marginal_tables.constants import (
    CELL_PEOPLE,
    CELLS,
    FEWEST_GROUPS,
    MOST_GROUPS,
    PARTS,
    PEOPLE,
    PER_CELL,
    ROUNDS,
)
from privtraj.marginal_tables.denoising import denoised, smoothed
from privtraj.marginal_tables.pairs import covariances, measured_pairs, noise_of
from privtraj.marginal_tables.particles import Problem, Target, fitted
from privtraj.marginal_tables.people import drawn
from privtraj.marginal_tables.slabs import Ends
from privtraj.marginals import Marginals, Progress
from privtraj.privacy.guard import Guard
from privtraj.privacy.watching import Table
from privtraj.slabs.fit import Resolution
from privtraj.space import Slabs

TABLES = "marginal tables"

_ALWAYS = Slabs.between(np.empty(0))


class TablesSettings(NamedTuple):
    """What a fit by marginal tables will do. mu: 1/z of all rounds together."""

    mu: float
    people: int = PEOPLE
    worth: float = math.inf

    def summary(self) -> dict[str, Any]:
        """What the model says about them."""
        return {
            "measure": "marginals",
            "particles": self.people,
            "steps": len(ROUNDS),
            "cells_per_side": None,
        }


def fit_tables(
    guard: Guard,
    resolution: Resolution,
    settings: TablesSettings,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> tuple[Marginals, Floats]:
    """Curves of people through S slabs, particle i of all knots is one person, and the knots."""
    slabs = resolution.timeline.slabs(resolution.slab_of_moment)
    ends = Ends.of(resolution)
    asked, axes = _Asked(guard, settings.mu), guard.axes
    told = progress or (lambda done, of: None)
    told(0, len(ROUNDS) + 1)
    (first,), _ = asked.tables(0, [((), slabs)], (1,) * guard.n_features)
    people = max(float(first.sum()), 1.0)
    told(1, len(ROUNDS) + 1)
    sides = axes.sides(cells_of_number(people, asked.deviation(1, guard.n_features)))
    every = [(j,) for j in range(guard.n_features)]
    alone, noise_alone = asked.tables(1, [(one, _ALWAYS) for one in every], sides)
    shares = [
        on_simplex(
            (table[0] if levels else smoothed(table[0], noise_alone)) / max(table.sum(), 1.0)
        )
        for table, levels in zip(alone, axes.levels, strict=True)
    ]
    told(2, len(ROUNDS) + 1)
    noise = asked.deviation(2, len(every))
    count = people / slabs.count / (PER_CELL * noise)
    in_time = _grouped(axes, shares, people, count, noise)
    timed, _ = asked.tables(2, [(one, slabs) for one in every], sides, in_time)
    sizes = np.maximum(np.mean([table.sum(axis=1) for table in timed], axis=0), 1.0)
    people = float(sizes.sum())
    told(3, len(ROUNDS) + 1)
    still = [np.outer(sizes, share @ groups.indicator(of)) for share, of in _each(shares, in_time)]
    near = [
        not levels or ordered for levels, ordered in zip(axes.levels, axes.ordered, strict=True)
    ]
    moments = resolution.centres
    over_time = [
        mean
        if fixed
        else denoised(table, mean, noise, moments, groups.scores(of) if alike else None)
        for table, mean, of, alike, fixed in zip(
            timed, still, in_time, near, axes.fixed, strict=True
        )
    ]
    pairs = guard.n_features * (guard.n_features - 1) // 2
    noise_of_pairs = asked.deviation(3, max(pairs, 1))
    most = math.sqrt(people / (PER_CELL * noise_of_pairs))
    in_pairs = _grouped(axes, shares, people, most, noise_of_pairs)
    part_of_slab = np.arange(slabs.count) * min(PARTS, slabs.count) // slabs.count
    by_part = [
        groups.indicator(part_of_slab).T @ _in_cells(share, table, of) @ groups.indicator(together)
        for share, table, of, together in zip(shares, over_time, in_time, in_pairs, strict=True)
    ]
    parts = Slabs(slabs.edges, part_of_slab[slabs.slab_of_piece])
    found = measured_pairs(
        in_pairs,
        near,
        by_part,
        lambda wanted: asked.tables(3, [(pair, _ALWAYS) for pair in wanted], sides, in_pairs),
        lambda wanted: asked.tables(4, [(pair, parts) for pair in wanted], sides, in_pairs),
    )
    told(len(ROUNDS), len(ROUNDS) + 1)
    numbers = np.flatnonzero(axes.numbers).tolist()
    together, precision = covariances(found, in_pairs, shares, numbers)
    problem = Problem(
        sizes=_single(sizes / people),
        people=_single(people),
        alone=tuple(_target(share * people, noise_alone, people) for share in shares),
        over_time=tuple(_target(table, noise, people) for table in over_time),
        pairs=_pair_target(found.always, found.precision[0], people),
        parts=_pair_target(found.parts, found.precision[1], people),
        part_of_slab=_single(groups.indicator(part_of_slab).T),
        covariances=Target(_single(together), _single(precision)),
        means=_single(
            [
                share @ ((np.arange(len(share)) + 0.5) / len(share))
                for share in (shares[j] for j in numbers)
            ]
        ),
        time_groups=tuple(_single(groups.indicator(one)) for one in in_time),
        pair_groups=tuple(_single(groups.indicator(one)) for one in in_pairs),
    )
    particles = drawn(fitted(problem, axes, rng), axes, ends, settings.people, rng)
    told(len(ROUNDS) + 1, len(ROUNDS) + 1)
    cell = np.full(len(particles), 1 / (max(sides) * math.sqrt(12)))
    marginals = Marginals(
        particles,
        np.full(particles.shape[:2], 1 / particles.shape[1]),
        bandwidth=cell / 2,
        resolution=cell,
        diagnostics={
            "people_counted": sizes.tolist(),
            "people_noise": noise * math.sqrt(sum(map(groups.count, in_time))) / len(every),
            "worth": min(people**2 / max(noise_of(found, pairs), 1.0), people),
        },
    )
    return marginals, ends.knots


class _Asked:
    """Questions to a guard, each round at its share of 1/z."""

    def __init__(self, guard: Guard, mu: float) -> None:
        self._guard = guard
        self._mu = mu

    def deviation(self, turn: int, tables: int) -> float:
        """Standard deviation of a cell in a round of so many tables, in people."""
        return math.sqrt(tables / ROUNDS[turn]) / self._mu

    def tables(
        self,
        turn: int,
        wanted: Sequence[tuple[tuple[int, ...], Slabs]],
        sides: Sequence[int],
        grouped: Sequence[Ints] | None = None,
    ) -> tuple[list[Floats], float]:
        """Noisy tables (K, cells) of these columns and slabs, and the deviation of their cells."""
        questions = []
        for columns, slabs in wanted:
            mine = tuple(side if j in columns else 1 for j, side in enumerate(sides))
            few = None
            if grouped is not None:
                few = tuple(one if j in columns else None for j, one in enumerate(grouped))
            questions.append(Table(slabs, mine, groups=few))
        z = 1 / (self._mu * math.sqrt(ROUNDS[turn]))
        return self._guard.tables(questions, z, TABLES), self.deviation(turn, len(questions))


def _grouped(
    axes: Axes, shares: list[Floats], people: float, count: float, noise: float
) -> list[Ints]:
    """(L_j,) of each column: at most `count` groups of a number, and of a category those levels
    that stand out where they are spread over so many cells."""
    most = int(np.clip(count, FEWEST_GROUPS, MOST_GROUPS))
    least = PER_CELL * noise * math.sqrt(most) / people
    made = []
    for share, levels, ordered in zip(shares, axes.levels, axes.ordered, strict=True):
        if not levels:
            made.append(groups.of_number(share, most))
        else:
            made.append((groups.of_ordered if ordered else groups.of_category)(share, least))
    return made


def cells_of_number(people: float, noise: float) -> int:
    """The power of two next to N / (CELL_PEOPLE noise), within limits."""
    wanted = math.log2(max(people / (CELL_PEOPLE * noise), 1.0))
    return int(2 ** np.clip(round(wanted), *np.log2(CELLS)))


def _each(shares: list[Floats], grouped: list[Ints]) -> Iterable[tuple[Floats, Ints]]:
    return zip(shares, grouped, strict=True)


def _in_cells(share: Floats, over_time: Floats, in_time: Ints) -> Floats:
    """(S, L) people in the cells of a column, from their shares (L,) and their groups over time."""
    of_group = np.bincount(in_time, share)
    grown = np.maximum(over_time, 0.0) / np.maximum(of_group, 1e-12)
    cells: Floats = share * grown[:, in_time]
    return cells


def on_simplex(shares: Floats) -> Floats:
    """The nearest shares (n,) that are not negative and add up to 1."""
    falling = np.sort(shares)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(shares) + 1)
    return np.maximum(shares - excess[np.flatnonzero(falling > excess)[-1]], 0.0)


def _target(counts: Floats, deviation: float, people: float) -> Target:
    precision = np.full(counts.shape, (people / deviation) ** 2)
    return Target(_single(counts / people), _single(precision))


def _pair_target(counts: Floats, precision: Floats, people: float) -> Target:
    return Target(_single(counts / people), _single(precision * people**2))


def _single(values: Any) -> Any:
    return jnp.asarray(values, jnp.float32)
