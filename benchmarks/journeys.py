"""People whose paths are smooth: carried round by a flow, swinging with inertia, driving in a city.

Here the next place does not follow from the present one alone: where somebody goes depends on
where they came from, which the population at single times does not show. `process_paths` has them
beside the diffusions of `privtraj.datasets`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from privtraj import datasets
from privtraj.base.arrays import Floats, Ints

BOUNDS = datasets.PROCESS_BOUNDS
ROTATION_ANGLE = 1.5 * np.pi  # of the flow over [0, 1]

INERTIA_FRICTION = 2.0  # of the velocity, per unit of time
INERTIA_SPRING = 16.0  # how strongly places are drawn to 0
INERTIA_START = -0.7  # mean of the first coordinate at time 0
INERTIA_SPREAD = 0.2  # standard deviation of a coordinate at all times

# Centre, standard deviation and share of the visits of the parts of the city.
_CITY_CENTRES = np.array([[0.0, 0.0], [0.8, 0.6], [-0.7, -0.8]])
_CITY_SPREADS = np.array([0.15, 0.1, 0.12])
_CITY_SHARES = np.array([0.5, 0.3, 0.2])
_OFF_PLANE = 0.15  # spread of coordinates that have no part in the motion
_SPEED = (4.0, 0.3)  # of vehicles: median, and deviation of its logarithm
_STOP = (0.05, 0.35)  # shortest and longest stop
_WARM_UP = 2.0  # time before 0, so that the share of vehicles that drive has settled


def rotation(n: int, u: Floats, dimensions: int, rng: np.random.Generator) -> Floats:
    """Paths (n, T, D) of a flow that turns the first two coordinates about 0; others stay.

        x(t) = R(3/2 pi t) x(0),   x(0) ~ N((.7, 0), diag(.2^2, .1^2))

    The cloud lies off the centre and is longer than wide; those who would leave the box, one in
    10,000, are drawn again.
    """
    start = _OFF_PLANE * rng.standard_normal((n, dimensions))
    outside = np.ones(n, dtype=bool)
    while outside.any():
        start[outside, :2] = rng.normal((0.7, 0.0), (0.2, 0.1), (int(outside.sum()), 2))
        outside = np.linalg.norm(start[:, :2], axis=1) > BOUNDS[1]
    angle = ROTATION_ANGLE * u
    x, y = start[:, None, 0], start[:, None, 1]
    paths = np.repeat(np.clip(start, *BOUNDS)[:, None], len(u), axis=1)
    paths[..., 0] = np.cos(angle) * x - np.sin(angle) * y
    paths[..., 1] = np.sin(angle) * x + np.cos(angle) * y
    return paths


def inertia(n: int, u: Floats, dimensions: int, rng: np.random.Generator) -> Floats:
    """Paths (n, T, D) with an Ornstein-Uhlenbeck velocity on a weak spring, for increasing times.

        dx = v dt,   dv = -(2 v + 16 x) dt + s dB,   Var x = .2^2 and Var v = 16 Var x at all times

    The first coordinate starts around -.7, at rest on average, and swings through 0. The pair
    (x, v) is Gaussian: with z' = A z + noise and stationary covariance S its transitions are exact,

        z(t + h) | z(t) ~ N(e^(A h) z(t), S - e^(A h) S e^(A h)^T).
    """
    spread = np.diag([INERTIA_SPREAD**2, INERTIA_SPRING * INERTIA_SPREAD**2])
    z = rng.standard_normal((n, dimensions, 2)) * np.sqrt(np.diag(spread))
    z[:, 0, 0] += INERTIA_START
    seen, now = [], 0.0
    for moment in u:
        onward = inertia_transition(float(moment) - now)
        left = spread - onward @ spread @ onward.T
        values, vectors = np.linalg.eigh(left)
        noise = rng.standard_normal(z.shape) * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
        z, now = z @ onward.T + noise, float(moment)
        seen.append(np.clip(z[..., 0], *BOUNDS))
    return np.stack(seen, axis=1)


def inertia_transition(lag: float) -> Floats:
    """e^(A h) (2, 2) of `inertia`: mean of (x, v) a time h later, per unit of (x, v) now.

    In a population at all times, [0, 0] is also the autocorrelation of a coordinate.
    """
    from scipy.linalg import expm

    return np.asarray(expm(lag * np.array([[0.0, 1.0], [-INERTIA_SPRING, -INERTIA_FRICTION]])))


def vehicles(n: int, u: Floats, dimensions: int, rng: np.random.Generator) -> Floats:
    """Paths (n, T, D) of vehicles that drive straight between places of a city, and stop there.

    A leg of length l takes l / speed, each vehicle at its own mean speed, and the share of the way
    is 3 s^2 - 2 s^3 of the share s of the time, so that it eases in and out and velocity is
    continuous. Stops last .05 to .35. The first two coordinates of places come from three Gaussian
    parts of a city. All begin long before time 0: the population hardly changes, its people do.
    """
    median, scatter = _SPEED
    speed = median * np.exp(scatter * rng.standard_normal(n))
    here = _places(n, dimensions, rng)
    paths = np.repeat(here[:, None], len(u), axis=1)
    leave = rng.uniform(*_STOP, n) - _WARM_UP
    while (leave < u.max()).any():
        there = _places(n, dimensions, rng)
        lasting = np.linalg.norm(there - here, axis=1) / speed
        share = np.clip((u - leave[:, None]) / np.maximum(lasting, 1e-12)[:, None], 0.0, 1.0)
        eased = (share**2 * (3 - 2 * share))[..., None]
        # Readings after this leg are placed at its end, and by the next leg again.
        gone = (u >= leave[:, None])[..., None]
        paths = np.where(gone, here[:, None] + eased * (there - here)[:, None], paths)
        leave = leave + lasting + rng.uniform(*_STOP, n)
        here = there
    return np.clip(paths, *BOUNDS)


def _places(n: int, dimensions: int, rng: np.random.Generator) -> Floats:
    """Places (n, D) of the city."""
    part: Ints = rng.choice(len(_CITY_SHARES), n, p=_CITY_SHARES)
    places = _OFF_PLANE * rng.standard_normal((n, dimensions))
    spread = _CITY_SPREADS[part, None]
    places[:, :2] = _CITY_CENTRES[part] + spread * rng.standard_normal((n, 2))
    return places


JOURNEYS = {"rotation": rotation, "inertia": inertia, "vehicles": vehicles}
PROCESSES = (*datasets.PROCESSES, *JOURNEYS)


def process_paths(
    name: str, n: int, times: int | ArrayLike = 10, seed: int = 0, *, dimensions: int = 2
) -> Floats:
    """Paths (n, T, D) over [0, 1] of a diffusion of `privtraj.datasets`, or of a journey."""
    if name not in JOURNEYS:
        return datasets.process_paths(name, n, times, seed, dimensions=dimensions)
    u = np.linspace(0, 1, times) if isinstance(times, int) else np.asarray(times, np.float64)
    return JOURNEYS[name](n, u, dimensions, np.random.default_rng(seed))
