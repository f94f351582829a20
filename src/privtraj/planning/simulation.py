"""Fits that cost nobody anything: the real pipeline on stand-ins, as a question describes them."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privtraj.arrays import Floats
from privtraj.clouds import systematic
from privtraj.data.snapshots import Snapshots
from privtraj.model import TrajectoryModel
from privtraj.planning.question import Question
from privtraj.planning.standins import RELEASED, Yardstick, people_at
from privtraj.space import fold

# Set by hand: few times are scored, as each takes an optimal transport.
_SCORED_TIMES = 3  # bins at which a fit is compared with the truth
_VISITS = 64  # moments at which visitors come, or more if there are many bins
READ_AT = np.array([0.12, 0.45, 0.83])  # where bins of any number are compared


class Records(NamedTuple):
    """Stand-in people: moments (n,) in order, points (n, d) in the unit cube, whose they are."""

    moments: Floats
    points: Floats
    person: NDArray[np.int64]


def snapshots_of(question: Question, name: str, seed: int) -> Records:
    """People of a stand-in, the same number at every bin time."""
    each = question.people * question.records_per_person // question.times
    return _records(question, name, np.repeat(bin_times(question), each), seed)


def visitors(question: Question, name: str, seed: int) -> Records:
    """People of a stand-in, each seen at a random moment of the range."""
    rng = np.random.default_rng(seed)
    n = question.people * question.records_per_person
    visits = max(_VISITS, 4 * question.times)
    moments = (np.sort(rng.integers(visits, size=n)) + 0.5) / visits
    return _records(question, name, moments, seed)


def _records(question: Question, name: str, moments: Floats, seed: int) -> Records:
    # in order of time, so that records of one person are far apart and hardly ever in one bin
    person = np.arange(len(moments)) % question.people
    return Records(moments, people_at(name, moments, question.features, seed), person)


def bin_times(question: Question) -> Floats:
    return np.linspace(0.0, 1.0, question.times)


def scored_bins(question: Question) -> NDArray[np.int64]:
    """Bins at which a fit is compared with the truth: the middle one of each third."""
    parts = np.array_split(np.arange(question.times), min(question.times, _SCORED_TIMES))
    return np.array([part[len(part) // 2] for part in parts])


def fit(question: Question, records: Records, seed: int) -> TrajectoryModel:
    """The real thing, on people who do not exist."""
    several = question.records_per_person > 1
    snapshots = Snapshots.from_arrays(
        records.moments,
        records.points,
        bounds=[(0.0, 1.0)] * question.features,
        bins=bin_times(question),
        person=records.person if several else None,
        records_per_person=question.records_per_person,
        seed=0,
    )
    with warnings.catch_warnings():  # that the budget buys little is what the forecast says
        warnings.simplefilter("ignore")
        return question.synthesizer(seed).fit(snapshots)


def worth_at_bins(
    model: TrajectoryModel, yardstick: Yardstick, bins: NDArray[np.int64], seed: int
) -> float:
    """People per time that the released marginals at these bins are worth."""
    rng = np.random.default_rng(seed)
    clouds = [_released(model, i, rng) for i in bins]
    return yardstick.worth(yardstick.error(clouds))


def worth_at_any_time(model: TrajectoryModel, yardstick: Yardstick, seed: int) -> float:
    """People per time that sampled paths are worth where they are read, between the bins too."""
    paths = model.sample(RELEASED, times=READ_AT, seed=seed).values
    return yardstick.worth(yardstick.error(list(paths.swapaxes(0, 1))))


def _released(model: TrajectoryModel, i: int, rng: np.random.Generator) -> Floats:
    """What `sample` gives at one bin, without coupling it to the others."""
    which = systematic(model.weights[i], RELEASED, rng)
    noise = rng.standard_normal((RELEASED, model.particles.shape[2]))
    return np.asarray(fold(model.particles[i][which] + model.bandwidth[i] * noise))
