"""The noise of whole fits: each release has the scale its ledger entry states, and is independent.

Fits are watched up to their last release: what leaves the guard, less the exact answer, is noise.
Seeds are fixed; over seeds, one comparison would fail with probability 1e-7 or less (`LIMIT`
standard errors), and there are some thirty.
"""

import math
import warnings
from contextlib import suppress
from typing import NamedTuple

import numpy as np
import pytest

from privtraj import LowBudgetWarning, Snapshots, TrajectorySynthesizer
from privtraj.measures.base import HEAD_COUNT
from privtraj.measures.counts import CELLS, SURVEY
from privtraj.measures.gradients import STEP, GradientSettings, descend
from privtraj.measures.windows import LISTED, MOTION
from privtraj.paper.sampled import SampledGradients
from privtraj.privacy import noise
from privtraj.privacy.events import GaussianSum
from privtraj.privacy.guard import CellCounts, Guard
from privtraj.privacy.ledger import Ledger

LIMIT = 5.4  # standard errors: 1e-7, both sides


class Enough(Exception):
    """Everything was released: what follows costs time and nothing else."""


class Told:
    """Remembers releases, and ends a fit after so many of the last kind."""

    def __init__(self, last, times=1):
        self.releases, self._last, self._left = [], last, times

    def released(self, release, shape, answer):
        self.releases.append((release, shape, answer))
        self._left -= release.what == self._last
        if self._left == 0:
            raise Enough


class Noise(NamedTuple):
    """What was added to one release, in standard deviations (K, D) of its ledger entry."""

    event: object
    drawn: np.ndarray


def watched(snapshots, last, times=1, **settings):
    """The releases of a fit, up to the last: (release, shape, answer)."""
    told = Told(last, times)
    with warnings.catch_warnings(), suppress(Enough):
        warnings.simplefilter("ignore", LowBudgetWarning)
        TrajectorySynthesizer(1.0, 1e-5, **settings).fit(snapshots, watcher=told)
    return told.releases


def noises(snapshots, *last, **settings):
    """The noise of every release of a fit, in order."""
    return [
        Noise(
            release.event(shape),
            (answer - exact_answer(snapshots, release.question, shape)) / deviation(release, shape),
        )
        for release, shape, answer in watched(snapshots, *last, **settings)
    ]


def exact_answer(snapshots, question, shape):
    rows = snapshots._rows
    if isinstance(question, CellCounts):
        return rows.cell_counts(shape.windows, question.along(shape))
    points, slabs = rows.in_slabs(shape.windows)
    total = dict.fromkeys(range(shape.windows.count), 0.0)
    for point, k in zip(points, slabs.tolist(), strict=True):
        vector = question.vector(shape, k, point)
        total[k] += vector * min(1.0, question.clip[k] / np.linalg.norm(vector))
    return np.stack(list(total.values()))


def deviation(release, shape):
    """Of one released number, as the event states it."""
    event = release.event(shape)
    if isinstance(release.question, CellCounts):
        return math.sqrt(event.noise_variance)
    return event.noise_multiplier * release.question.clip[:, None]


def kurtosis(event):
    if isinstance(event, GaussianSum):
        return 3.0
    x = np.arange(-20_000, 20_001)
    law = np.exp(-event.epsilon * np.abs(x))
    return float((law * x**4).sum() * law.sum() / (law * x**2).sum() ** 2)


def off(draws, event):
    """How many standard errors the mean square of draws is away from 1."""
    n = draws.size
    return abs(float((draws**2).mean()) - 1) * math.sqrt(n / (kurtosis(event) - 1))


def alike(first, second):
    """How many standard errors the mean product of draws is away from 0."""
    return abs(float((first * second).sum())) / math.sqrt(first.size)


@pytest.fixture(scope="module")
def many_bins():
    """200 bins, each with some of 600 people, in one feature."""
    rng = np.random.default_rng(0)
    bins = np.arange(200.0)
    return Snapshots.from_arrays(
        rng.choice(bins, 600), rng.uniform(size=600), bounds=[(0, 1)], bins=bins
    )


@pytest.fixture(scope="module")
def counted(many_bins):
    """Noise of two fits by counts of every bin: {name: (2, K, D)}, and the events."""
    fits = [noises(many_bins, CELLS, measure="counts", windows="bins", seed=k) for k in (1, 2)]
    least = [min(a.drawn.shape[1], b.drawn.shape[1]) for a, b in zip(*fits, strict=True)]
    return {
        a.event.what: (a.event, np.stack([a.drawn[:, :d], b.drawn[:, :d]]))
        for a, b, d in zip(*fits, least, strict=True)
    }


@pytest.fixture(scope="module")
def looks(many_bins):
    """Noise of the looks of 150 fits in slabs: {name: (event, (150, K, D))}, of as many windows as
    all of them have: noise decides whether people are at the bins alone."""
    fits = [noises(many_bins, MOTION, measure="counts", seed=k) for k in range(150)]
    found = {}
    for one in zip(*fits, strict=True):
        least = min(len(noise.drawn) for noise in one)
        found[one[0].event.what] = one[0].event, np.stack([noise.drawn[:least] for noise in one])
    return found


@pytest.fixture(scope="module")
def steps():
    """Noise of four steps of a fit by gradients: (event, (4, K, D))."""
    rng = np.random.default_rng(0)
    few = Snapshots.from_arrays(
        np.repeat(np.arange(3.0), 4), rng.uniform(size=(12, 2)), bounds=[(0, 1)] * 2, bins=[0, 1, 2]
    )
    settings = {"measure": "gradients", "windows": "bins", "particles": 32, "steps": 4, "seed": 1}
    head, *found = noises(few, STEP, 4, **settings)
    assert head.event.what == HEAD_COUNT
    return found[0].event, np.stack([one.drawn for one in found])


def test_a_fit_by_counts_releases_what_is_compared_here(counted, looks):
    assert list(counted) == [HEAD_COUNT, SURVEY, CELLS]
    assert list(looks) == [LISTED, MOTION]


@pytest.mark.parametrize("what", [HEAD_COUNT, SURVEY, CELLS])
def test_counts_of_a_fit_have_the_noise_of_their_ledger_entry(counted, what):
    event, drawn = counted[what]
    assert drawn.size >= 400  # half the noise is then seven standard errors away
    assert off(drawn, event) < LIMIT


@pytest.mark.parametrize("what", [LISTED, MOTION])
def test_looks_of_a_fit_have_the_noise_of_their_ledger_entry(looks, what):
    event, drawn = looks[what]
    assert drawn.size >= 300
    assert off(drawn, event) < LIMIT


@pytest.mark.slow
def test_steps_of_a_fit_have_the_noise_of_their_ledger_entry(steps):
    event, drawn = steps
    assert drawn.shape == (4, 3, 32 * 3 + 1)
    assert off(drawn, event) < LIMIT


@pytest.mark.parametrize("what", [HEAD_COUNT, SURVEY, CELLS, MOTION])
def test_times_cells_and_fits_have_noise_of_their_own(counted, looks, what):
    """One noise for two of them, and their difference would be exact."""
    _, drawn = (counted | looks)[what]
    assert alike(drawn[:, 1:], drawn[:, :-1]) < LIMIT
    assert alike(drawn[1:], drawn[:-1]) < LIMIT
    if drawn.shape[2] > 1:
        assert alike(drawn[:, :, 1:], drawn[:, :, :-1]) < LIMIT


@pytest.mark.slow
def test_steps_times_and_coordinates_have_noise_of_their_own(steps):
    _, drawn = steps
    for axis in range(3):
        moved = np.moveaxis(drawn, axis, 0)
        assert alike(moved[1:], moved[:-1]) < LIMIT


def test_one_release_does_not_repeat_the_noise_of_another(counted):
    head, survey, cells = (drawn for _, drawn in counted.values())
    for first, second in ((head, survey), (head, cells), (survey, cells)):
        a, b = (one.reshape(2, -1) for one in (first, second))
        n = min(a.shape[1], b.shape[1])
        assert alike(a[:, :n], b[:, :n]) < LIMIT


def test_places_without_anybody_have_as_much_noise_as_others(counted, many_bins):
    """An empty place without noise would show the first person in it."""
    _, drawn = counted[HEAD_COUNT]
    empty = exact_answer(many_bins, CellCounts(1), many_bins.shape)[:, 0] == 0
    assert 5 <= empty.sum() <= 40
    # of so many draws at epsilon 0.05, that most are zero has probability below 1e-6
    assert np.count_nonzero(drawn[:, empty]) > empty.sum()


def test_every_release_of_a_fit_is_the_last_entry_of_its_ledger(many_bins):
    class Paying(Guard):
        def ask(self, release):
            before = len(self.ledger.events)
            answer = super().ask(release)
            assert [event.what for event, _ in self.ledger.events[before:]] == [release.what]
            return answer

    class Pipeline(TrajectorySynthesizer):
        guard_class = Paying

    told = Told(CELLS)
    with warnings.catch_warnings(), suppress(Enough):
        warnings.simplefilter("ignore", LowBudgetWarning)
        Pipeline(1.0, 1e-5, measure="counts", seed=1).fit(many_bins, watcher=told)
    assert [event.what for event, *_ in told.releases] == [
        LISTED,
        MOTION,
        HEAD_COUNT,
        CELLS,
    ]


def test_all_noise_of_a_private_fit_is_asked_of_the_operating_system(many_bins, monkeypatch):
    """With given bytes for the operating system's, a private fit releases what a seeded one does"""
    settings = {"measure": "counts", "windows": "bins"}
    seeded = watched(many_bins, CELLS, seed=7, **settings)
    words, asked = noise.SeededSource(7), []

    def urandom(count):
        asked.append(count)
        return words.words(count // 8).tobytes()

    monkeypatch.setattr(noise.os, "urandom", urandom)
    private = watched(many_bins, CELLS, seed=None, **settings)
    for (_, _, first), (_, _, second) in zip(seeded, private, strict=True):
        np.testing.assert_array_equal(first, second)
    assert sum(asked) >= 8 * sum(answer.size for _, _, answer in private)


@pytest.mark.slow
def test_a_sampled_fit_asks_nobody_whom_its_coins_leave_out(snapshots_of, silent):
    """Words in the middle are heads at any rate above a half, tails below, and draw no noise."""
    crowd = snapshots_of(list(np.random.default_rng(0).uniform(size=(2, 40, 1))))
    settings = GradientSettings(particles=4, steps=2, noise_multiplier=9.0, worth=9.0)
    people, rng = np.full(2, 40.0), np.random.default_rng(0)
    for rate in (0.25, 0.75):
        told = Told(STEP)
        guard = crowd.guarded(Guard, Generous(1.0, 1e-5), silent(), watcher=told)
        with suppress(Enough):
            gradients = SampledGradients(rate).gradients(guard, people, settings, rng)
            descend(gradients, settings, 1, rng, np.ones(1))
        ((release, shape, answer),) = told.releases
        event = release.event(shape)
        assert event.rate == rate
        assert guard.ledger.events == ((event, 2),)
        assert answer.any() == (rate > 0.5)


class Generous(Ledger):
    """Pays for anything: to account for sampled steps takes longer than the steps."""

    def spend(self, event, times=1):
        self.events = (*self.events, (event, times))
