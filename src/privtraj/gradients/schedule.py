"""How much of everything: particles, steps, cells, step sizes. Chosen from public numbers alone.

The inputs are the number of people per time (declared public, or released with noise and paid
for), the number of features, and the privacy that is left. Nothing here sees data. Every choice can
be set by hand.

Gradients.  A full step moves a particle by privacy noise of standard deviation m c z / N in every
coordinate, with z = sqrt(K) / mu for K equal steps and c of about CLIP(d) sigma. Summed over the d
coordinates and in units of sigma the noise is
    nu = m CLIP(d) sqrt(d K) / (N mu),
and the fit collapses when nu is much above 1/2: responsibilities then follow noise. So
    K = 1.2 sqrt(2 N mu / d)      and      m = NOISE N mu / (CLIP(d) sqrt(d K)).

Counts.  Cells must be few enough to stand out and small enough to matter: a cell where people are
should hold CROWD / epsilon of them or more, and at least FEWEST whatever the budget. If people
occupy a share `area` of the box (see `survey`), that is
    G = (min(N epsilon / CROWD, N / FEWEST) / area)^(1/d)      cells per side,
but no more than FINEST (N epsilon / 10)^(1 / (1 + d/2)), which is fine enough for people spread
over a part of the box only: concentration at some times must not starve the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

MeasureName = Literal["gradients", "counts"]

from privtraj.arrays import Floats

NOISE = 0.5
MAX_PARTICLES = 512
STEPS_RANGE = (8, 60)
SAMPLED_STEPS = 30  # where people are sampled, whatever their number: it must be known in advance
MAX_CELLS = 2**18
CROWD = {1: 60.0, 2: 60.0}  # by the number of features; 12 for more
FEWEST = {1: 10.0, 2: 10.0}  # and 6 for more
LEAST_CELLS = {1: 12, 2: 12, 3: 12}  # per side; 4 for more
AMPLE, AMPLE_CELLS = 400.0, 16  # N epsilon from which one or two features get more than the least
FINEST = 4.0
MOST_PER_SIDE = {1: 256, 2: 64, 3: 24}  # and 12 for more
TINY = 60.0  # N epsilon below which not even the least cells can be told from noise
RELEASED_PARTICLES = 256
MOST_PARTICLES = 4096  # by hand: the plan of one edge, m x m, is made at a time
MOST_WORK = 1e11  # numbers summed over people in one fit, some five minutes on two cores
SETTLING_SHARE = 0.4  # of the steps of private gradients


@dataclass(frozen=True)
class Schedule:
    """Per-step settings (K,), named as in `langevin.Stride`."""

    step_size: Floats
    pull: Floats
    debias: Floats
    balance: Floats
    temperature: Floats
    noise_limit: Floats
    mass_rate: Floats
    relocate: Floats
    learn: Floats
    shrink: Floats
    grow: Floats

    @property
    def steps(self) -> int:
        """K."""
        return len(self.step_size)


@dataclass(frozen=True)
class Plan:
    """What a fit will do.

    mu: 1/z of all steps of private gradients together.  epsilon: of the private counts.
    worth: rough number of people per time that the budget buys.
    """

    measure: MeasureName
    particles: int
    steps: int
    cells_per_side: int
    mu: float
    epsilon: float
    worth: float


def clip_per_bandwidth(dimensions: int) -> float:
    """CLIP(d): norm of a typical person's vector in bandwidths, 0.75 at d = 2 and 2.3 at d = 8."""
    return 0.53 * math.sqrt(dimensions) * (1 + 0.08 * max(dimensions - 2, 0))


def gradient_steps(people: float, dimensions: int, mu: float) -> int:
    """K = 1.2 sqrt(2 N mu / d), within limits."""
    low, high = STEPS_RANGE
    return int(np.clip(round(1.2 * math.sqrt(2 * people * mu / dimensions)), low, high))


def gradient_particles(people: float, dimensions: int, mu: float, steps: int) -> int:
    """m = NOISE N mu / (CLIP(d) sqrt(d K)), within limits, on a ladder so that noise in N hardly
    ever means another compilation."""
    m = NOISE * people * mu / (clip_per_bandwidth(dimensions) * math.sqrt(dimensions * steps))
    return _rung(float(np.clip(m, 2, MAX_PARTICLES)))


def _rung(count: float) -> int:
    """Round down to three leading binary digits (4, 5, 6, 7, 8, 10, 12, 14, 16, 20, ...)."""
    power = 2 ** math.floor(math.log2(count))
    return int(power * (1 + 0.25 * math.floor(4 * (count / power - 1))))


def cells_per_side(people: float, dimensions: int, epsilon: float, area: float = 1.0) -> int:
    """G, a multiple of 4 so that counts can be pooled twice, within the number of cells allowed."""
    needed = max(CROWD.get(dimensions, 12.0) / epsilon, FEWEST.get(dimensions, 6.0))
    crowd = people / needed / area
    fine = LEAST_CELLS.get(dimensions, 4) if people * epsilon >= TINY else 4
    if dimensions <= 2 and people * epsilon >= AMPLE:
        fine = AMPLE_CELLS
    wanted = 4 * round(max(crowd, 1.0) ** (1 / dimensions) / 4)
    finest = 4 * round(FINEST / 4 * max(people * epsilon / 10, 1.0) ** (1 / (1 + dimensions / 2)))
    most = max(fine, min(finest, MOST_PER_SIDE.get(dimensions, 12)))
    wanted = int(np.clip(wanted, fine, most))
    allowed = MAX_CELLS ** (1 / dimensions) * (1 + 1e-9)
    if wanted > allowed:
        wanted = max(2, int(allowed) // 4 * 4) if allowed >= 4 else 2
    return wanted


def choose_measure(dimensions: int) -> MeasureName:
    """Counts up to three features, gradients from four on.

    Cells multiply with every feature while particles follow the people. The number of people could
    say more, but it is private, and which mechanism is used must not follow from a private number:
    each of the two keeps to the budget, a choice between them would not.
    """
    return "counts" if dimensions <= 3 else "gradients"


def plan(
    people: float,
    dimensions: int,
    *,
    measure: MeasureName,
    times: int,
    mu: float,
    epsilon: float,
    area: float = 1.0,
    particles: int | None = None,
    steps: int | None = None,
    cells: int | None = None,
) -> Plan:
    """The plan for `people` at each of `times`; mu and epsilon are what the release may spend.

    area: share of the box that people occupy, released.  steps: of private gradients.
    """
    if measure == "counts":
        side = cells or cells_per_side(people, dimensions, epsilon, area)
        worth = people * epsilon / (2 * math.log(side**dimensions))
        return Plan("counts", particles or RELEASED_PARTICLES, 0, side, mu, epsilon, worth)
    k = steps or gradient_steps(people, dimensions, mu)
    affordable = MOST_WORK / (people * times * k * (dimensions + 1))
    m = particles or int(min(gradient_particles(people, dimensions, mu, k), max(affordable, 16)))
    bought = NOISE * people * mu / (clip_per_bandwidth(dimensions) * math.sqrt(dimensions * k))
    return Plan("gradients", m, k, 0, mu, epsilon, bought)


def gradient_schedule(steps: int, pull: float, dimensions: int = 2) -> Schedule:
    """Find the people's place and scale, anneal the bandwidth, then settle with smaller steps.

    Langevin noise moves a particle by as many bandwidths in all d coordinates together as in two:
    responsibilities follow the distance, and a particle that is kicked further each time the more
    coordinates there are loses its people, and then its way.
    """
    s = np.arange(steps)
    found, annealed = 2, max(3, round((1 - SETTLING_SHARE) * steps))
    settling = s >= annealed
    into = np.clip((s - annealed + 1) / max(steps - annealed, 1), 0.0, 1.0)
    step_size = 0.8 * (0.15 / 0.8) ** into
    rate = 0.1 ** (1 / max(annealed - found, 1))
    return Schedule(
        step_size=step_size,
        pull=np.where(s < found, 0.0, pull * step_size),
        debias=np.ones(steps),
        balance=np.ones(steps),
        temperature=np.where(s < 0.75 * steps, 0.25 * math.sqrt(2 / max(dimensions, 2)), 0.0),
        noise_limit=np.full(steps, 0.3),
        mass_rate=np.where(
            s < found, 0.0, np.where(settling, 1 / (np.maximum(s - annealed, 0) + 3), 0.35)
        ),
        relocate=((s >= found) & (s < 0.75 * steps)).astype(float),
        learn=np.where(settling, step_size, 1.0),
        shrink=np.where(s < found, 0.1, np.where(settling, 0.9, rate)),
        grow=np.where(settling, 1.1, 1.0),
    )
