"""Slabs in a fit: how many, by a private look at how people move, and curves through them."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np

from privtraj.base.arrays import Floats, Ints, Mask, equal_weight
from privtraj.base.space import hat_functions, unit_time
from privtraj.columns.axes import Axes
from privtraj.data.public import TimeAxis
from privtraj.measures.counts.settings import occupied
from privtraj.measures.head_count import count_epsilon
from privtraj.measures.marginals import Marginals
from privtraj.measures.windows.choice import FEWEST_SLABS, SlabChoice, choose_slabs, even_slabs
from privtraj.measures.windows.constants import (
    CURVES,
    MOST_LOOKED,
    PROBE_BINS,
    PROBE_CELLS,
    PROBE_LEVELS,
    PROBE_SHARE,
    READINGS,
    SLAB_NOISE,
    SLAB_NOISE_OF_GRADIENTS,
    STARTS,
)
from privtraj.measures.windows.curves import knots_of, reading_times, stiffest_curves
from privtraj.measures.windows.levels import curves_of_groups
from privtraj.measures.windows.motion import (
    moment_paths,
    motion,
    overlooked,
    share_paths,
    slab_means,
)
from privtraj.measures.windows.timeline import Timeline, are_at_listed_times, timeline_of
from privtraj.motion.process import FITTED, Reference, follow
from privtraj.privacy.guard import Guard
from privtraj.privacy.noise import EPSILON_RANGE, laplace_variance
from privtraj.privacy.questions import CellCounts, Laplace, Release

MOTION = "how people move"


def look_side(features: int) -> int:
    """Cells per side of the look at motion."""
    return PROBE_CELLS.get(features, 2)


def can_look(features: int) -> bool:
    """Whether the cells of the look are few enough to count."""
    return features <= MOST_LOOKED


def found_slabs(
    guard: Guard, timeline: Timeline, most: int, measured: int | None = None
) -> SlabChoice | None:
    """The slabs, `most` at most, by coarse counts over time that are released and paid for.

    Cells are those of the numbers; where there are none, the levels of the first categories.
    None for a budget too small to look, or too many features.  measured: in how many features
    slabs will be, if not in those of the look.
    """
    epsilon, axes = count_epsilon(guard, PROBE_SHARE), guard.axes
    features = axes.n_numbers
    if epsilon == EPSILON_RANGE[0] or not can_look(features):
        return None
    moments = unit_time(timeline.moments, timeline.moments)
    seen = even_slabs(len(moments), min(timeline.most_slabs, PROBE_BINS))
    side = look_side(features)
    sides = axes.only_numbers(side) if features else first_levels(axes)
    looking = Release(CellCounts(sides), Laplace(epsilon), MOTION)
    counts = guard.in_slabs(timeline.slabs(seen)).ask(looking)
    people, noise = max(float(counts.sum()), float(len(counts))), laplace_variance(epsilon)
    if features:
        paths = moment_paths(counts, side, noise, people, features)
    else:
        paths = share_paths(counts, noise, people)
    moving = motion(paths, moments, seen)
    if not moving.any():
        moving = overlooked(paths, moments, seen)
    each = people / occupied(axes.combinations)
    in_slabs = measured or max(features, 1)
    return choose_slabs(moving, moments, each, guard.ledger.epsilon, in_slabs, most)


def first_levels(axes: Axes) -> tuple[int, ...]:
    """(d,) all levels of the first categories, as many as have `PROBE_LEVELS` cells together, and
    one of the others; of a first that has more, as many cells as that."""
    sides: list[int] = []
    for levels in axes.levels:
        sides.append(levels if math.prod(sides) * levels <= PROBE_LEVELS else 1)
    if math.prod(sides) == 1:
        sides[0] = PROBE_LEVELS
    return tuple(sides)


class Resolution(NamedTuple):
    """Which slabs of time are measured. slab_of_moment: (M,) 0, .., 0, 1, .., K - 1.

    found: why so many; None if somebody set their number, or nobody could look.
    """

    timeline: Timeline
    slab_of_moment: Ints
    found: SlabChoice | None = None

    @property
    def slabs(self) -> int:
        """K."""
        return int(self.slab_of_moment[-1]) + 1

    @property
    def needs_curves(self) -> bool:
        """Whether people of a slab are of several times; else every listed time is a slab."""
        return not self.timeline.listed or self.slabs < len(self.timeline.moments)

    @property
    def unit_moments(self) -> Floats:
        """(M,) in shares of the range."""
        return unit_time(self.timeline.moments, self.timeline.moments)

    @property
    def centres(self) -> Floats:
        """(K,) mean moment of each slab, in shares of the range."""
        return np.bincount(self.slab_of_moment, self.unit_moments) / np.bincount(
            self.slab_of_moment
        )

    @property
    def middles(self) -> Floats:
        """(K,) the same in data units."""
        start, end = self.timeline.moments[[0, -1]]
        middles: Floats = start + self.centres * (end - start)
        return middles

    @property
    def lengths(self) -> Floats:
        """(K,) how much time a slab covers, in data units; or how many of the listed times."""
        moments = self.timeline.moments
        if self.timeline.listed:
            return np.bincount(self.slab_of_moment).astype(np.float64)
        cuts = self.timeline.slabs(self.slab_of_moment).edges
        return np.diff(np.concatenate([moments[:1], cuts, moments[-1:]]))

    def describe(self) -> str:
        """For a certificate."""
        slabs = f"{self.slabs} slabs"
        if self.found is not None:
            hidden, noise = self.found.motion, self.found.noise
            slabs += f", which hide a motion of {hidden:.1g} and cost a noise of {noise:.1g} "
            slabs += "(expected squared W2, in shares of the box)"
        people = "at the listed times" if self.timeline.listed else "at any time"
        return f"{slabs}; people are {people}"


def resolution(
    guard: Guard,
    axis: TimeAxis,
    slabs: int | Literal["auto", "bins"],
    most: int,
    whole_bins: bool = False,
    features: int | None = None,
) -> Resolution:
    """Every bin by itself, so many slabs, or as many as suit how people move, `most` at most.

    whole_bins: slabs must be made of whole bins, as their numbers of people are public.
    features: in which slabs will be measured, if not in those of this guard.
    """
    listed = slabs == "bins" or are_at_listed_times(guard, axis)
    timeline = timeline_of(axis, listed, whole_bins)
    if slabs == "bins":
        return Resolution(timeline, np.arange(len(axis.times)))
    most = min(most, timeline.most_slabs)
    found = found_slabs(guard, timeline, most, features) if slabs == "auto" else None
    if found is not None:
        return Resolution(timeline, found.slab_of_moment, found)
    wanted = FEWEST_SLABS if slabs == "auto" else slabs  # who cannot look sees no motion
    return Resolution(timeline, even_slabs(len(timeline.moments), min(wanted, most)))


def through_slabs(
    marginals: Marginals,
    resolution: Resolution,
    times: Floats,
    rng: np.random.Generator,
    reference: Reference,
    count: int | None = None,
    axes: Axes | None = None,
) -> tuple[Marginals, Floats | None]:
    """Curves through the marginals of the K slabs, at knots, which are in data units.

    There are `count` curves, or 512; particle i of all knots is one of them.  times: (T,) of
    interest.  reference: along which people move from slab to slab, in the unit cube of the
    numbers.  axes: which coordinates are levels, and which never change. Where every listed time is
    a slab of its own, its marginal is what it is: no knots.
    """
    timeline, of = resolution.timeline, resolution.slab_of_moment
    if not resolution.needs_curves:
        return marginals, None
    knots = timeline.knots(of, times)
    at, edges = unit_time(knots, timeline.moments), knots_of(resolution.unit_moments, of)
    m = count or CURVES
    if axes is None or not (axes.mixed or any(axes.fixed)):
        curves = _curves(marginals, resolution, rng, reference, m)
        particles = np.einsum("qk,mkd->qmd", hat_functions(at, edges), curves)
    else:

        def numeric(group: Marginals, size: int) -> Floats:
            return _curves(group, resolution, rng, reference, size, axes.still_numbers)

        in_slab = slab_means(of) @ hat_functions(resolution.unit_moments, edges)
        particles = curves_of_groups(marginals, axes, m, numeric, in_slab, at, edges, rng)
    at_knots = marginals._replace(
        particles=particles,
        weights=np.full((len(knots), m), 1 / m),
        bandwidth=np.interp(at, resolution.centres, marginals.bandwidth),
    )
    return at_knots, knots


def _curves(
    marginals: Marginals,
    resolution: Resolution,
    rng: np.random.Generator,
    reference: Reference,
    m: int,
    still: Mask | None = None,
) -> Floats:
    """Control points (m, K + 1, d) of curves through the marginals of the K slabs.

    still: (d,) coordinates that never change.
    """
    unit, of, centres = resolution.unit_moments, resolution.slab_of_moment, resolution.centres
    few = equal_weight(marginals.particles, marginals.weights, min(STARTS, m), rng)
    paths = follow(few, centres, reference.fitted(few[:, :: max(1, STARTS // FITTED)], centres))
    clouds = equal_weight(marginals.particles, marginals.weights, m * READINGS, rng)
    start = paths[np.arange(m) % len(paths)]
    # the constants of more features are near the largest noise: curves may not use all of it
    part = min(1.0, SLAB_NOISE[2] / SLAB_NOISE.get(clouds.shape[2], SLAB_NOISE_OF_GRADIENTS))
    noise = 0.0 if resolution.found is None else part * resolution.found.noise
    read = reading_times(unit, of, READINGS)
    return stiffest_curves(clouds, read, knots_of(unit, of), start, noise, rng, still)
