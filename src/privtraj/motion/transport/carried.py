"""Curves from which people can be drawn without the model: what another sampler needs of it.

A person goes along one of N curves of equal weight, through places at S stops, with an offset of
their own, as in `curves` and `mixed`. Where the model's own curves are smooth or Brownian between
its knots, the stops are the knots. Any other process is drawn beforehand, people without an offset
at stops so close that the way between two of them is straight but for chance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.motion.reference.base import Reference
from privtraj.motion.reference.brownian import Brownian
from privtraj.motion.reference.inertia import Inertia

_MOMENT = 1e-6  # share of the range in which any process is as Brownian motion


class Carried(NamedTuple):
    """N curves of equal weight, and what people on them have of their own.

    places: (N, S, d) in the unit cube; what is missing is filled in, and its flag says so.
    stops: (S,) from 0 to 1.  width: (S,) of a person's own offset.
    steady: width of the offset of what is fixed or goes one way, the same at all times.
    spline: whether they go from stop to stop by a monotone cubic; else straight, plus a Brownian
    bridge of this diffusivity.
    whole: whether these are all curves of the model; else some of them, or people drawn from it.
    lives: (M, 2) begins and ends on the clock, None where everybody is there all the time.
    own_lives: whether life i is that of curve i; else anybody has any life.
    """

    places: Floats
    stops: Floats
    width: Floats
    steady: float
    spline: bool
    diffusivity: float
    whole: bool
    lives: Floats | None = None
    own_lives: bool = False


def smooth_between(process: Reference, directions: Floats) -> bool | None:
    """How people go between the knots: by splines, or as Brownian motion or straight; None: in
    some other way, which has to be drawn."""
    if process.forgets:
        return None
    if directions.any() or isinstance(process, Inertia):
        return True
    straight = type(process).bridge is Reference.bridge
    return False if straight or isinstance(process, Brownian) else None


def momentary(process: Reference) -> float:
    """Diffusivity of a process over a moment: variance per time and coordinate."""
    return float(process.variance(np.array([_MOMENT]))[0] / _MOMENT)


def fine_stops(knots: Floats, most: int) -> Floats:
    """(S,) in [0, 1], the knots (K,) and evenly many between each two of them: at most so many, but
    all knots."""
    parts = max(1, (most - 1) // (len(knots) - 1))
    place = np.arange((len(knots) - 1) * parts + 1) / parts
    return np.interp(place, np.arange(len(knots)), knots)
