"""Slabs in a fit: how many, by a private look at how people move, and curves through them."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from privtraj.arrays import Floats, Ints
from privtraj.clouds import systematic
from privtraj.data.public import TimeAxis
from privtraj.head_count import count_epsilon
from privtraj.marginals import Marginals
from privtraj.privacy.guard import Guard
from privtraj.privacy.noise import EPSILON_RANGE, laplace_variance
from privtraj.reference.base import Reference
from privtraj.reference.least_action import FITTED, follow
from privtraj.slabs.choice import FEWEST_SLABS, SlabChoice, choose_slabs, even_slabs
from privtraj.slabs.constants import (
    CURVES,
    MOST_LOOKED,
    PROBE_BINS,
    PROBE_CELLS,
    PROBE_SHARE,
    READINGS,
    SLAB_NOISE,
    SLAB_NOISE_OF_GRADIENTS,
    STARTS,
)
from privtraj.slabs.curves import knots_of, reading_times, stiffest_curves
from privtraj.slabs.motion import moment_paths, motion, overlooked
from privtraj.slabs.timeline import Timeline, are_at_listed_times, timeline_of
from privtraj.space import hat_functions, unit_time

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

    None for a budget too small to look, or too many features.  measured: in how many features
    slabs will be, if not in those of the look.
    """
    epsilon, features = count_epsilon(guard, PROBE_SHARE), guard.n_features
    if epsilon == EPSILON_RANGE[0] or not can_look(features):
        return None
    moments = unit_time(timeline.moments, timeline.moments)
    seen = even_slabs(len(moments), min(timeline.most_slabs, PROBE_BINS))
    side = look_side(features)
    counts = guard.in_slabs(timeline.slabs(seen)).counts(side, epsilon, MOTION)
    people = max(float(counts.sum()), float(len(counts)))
    paths = moment_paths(counts, side, laplace_variance(epsilon), people, features)
    moving = motion(paths, moments, seen)
    if not moving.any():
        moving = overlooked(paths, moments, seen)
    in_slabs = measured or features
    return choose_slabs(moving, moments, people, guard.ledger.epsilon, in_slabs, most)


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
) -> tuple[Marginals, Floats | None]:
    """Curves through the marginals of the K slabs, at knots, which are in data units.

    There are `count` curves, or 512; particle i of all knots is one of them.  times: (T,) of
    interest.  reference: along which people move from slab to slab, in the unit cube. Where every
    listed time is a slab of its own, its marginal is what it is: no knots.
    """
    timeline, of = resolution.timeline, resolution.slab_of_moment
    if not resolution.needs_curves:
        return marginals, None
    knots = timeline.knots(of, times)
    curves = _curves(marginals, resolution, rng, reference, count or CURVES)
    basis = hat_functions(unit_time(knots, timeline.moments), knots_of(resolution.unit_moments, of))
    bandwidth = np.interp(
        unit_time(knots, timeline.moments), resolution.centres, marginals.bandwidth
    )
    at_knots = marginals._replace(
        particles=np.einsum("qk,mkd->qmd", basis, curves),
        weights=np.full((len(knots), len(curves)), 1 / len(curves)),
        bandwidth=bandwidth,
    )
    return at_knots, knots


def _curves(
    marginals: Marginals,
    resolution: Resolution,
    rng: np.random.Generator,
    reference: Reference,
    m: int,
) -> Floats:
    """Control points (m, K + 1, d) of curves through the marginals of the K slabs."""
    unit, of, centres = resolution.unit_moments, resolution.slab_of_moment, resolution.centres
    few = _picked(marginals, min(STARTS, m), rng)
    paths = follow(few, centres, reference.fitted(few[:, :: max(1, STARTS // FITTED)], centres))
    clouds = _picked(marginals, m * READINGS, rng)
    start = paths[np.arange(m) % len(paths)]
    # the constants of more features are near the largest noise: curves may not use all of it
    part = min(1.0, SLAB_NOISE[2] / SLAB_NOISE.get(clouds.shape[2], SLAB_NOISE_OF_GRADIENTS))
    noise = 0.0 if resolution.found is None else part * resolution.found.noise
    read = reading_times(unit, of, READINGS)
    return stiffest_curves(clouds, read, knots_of(unit, of), start, noise, rng)


def _picked(marginals: Marginals, count: int, rng: np.random.Generator) -> Floats:
    """(K, count, d) particles of each slab, as often as their weights say."""
    clouds = zip(marginals.particles, marginals.weights, strict=True)
    return np.stack([cloud[systematic(weights, count, rng)] for cloud, weights in clouds])
