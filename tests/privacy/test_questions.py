"""Every question against neighbouring tables, and every release against the law of its noise.

A question that has an example here is covered, and one without an example fails the first test.

False alarms: every statistical test is at `RATE` = 1e-7 (`LIMIT` standard errors, or exact tails of
the binomial). There are about 200 of them, so over seeds all pass but for 2e-5; seeds are fixed.
"""

import itertools
import math
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binom, norm

from privtraj.base.errors import BudgetError, InputError
from privtraj.base.space import Slabs
from privtraj.columns.kinds import Axes
from privtraj.privacy import noise
from privtraj.privacy.events import GaussianSum, Person
from privtraj.privacy.guard import (
    CellCounts,
    Gaussian,
    Guard,
    Laplace,
    MemoryRows,
    PublicShape,
    Question,
    Release,
    Table,
    Tables,
    View,
)
from privtraj.privacy.ledger import Ledger
from privtraj.privacy.pairs import LagTable
from privtraj.privacy.sums import ClippedSums, KernelSum, KernelSums

RATE = 1e-7
LIMIT = float(-norm.ppf(RATE / 2))  # standard errors
K = 6  # windows of time, so that six records of a person may each have their own
WINDOWS, WHOLE = Slabs.around(np.arange(float(K))), Slabs.between(np.empty(0))
NUMBERS = Axes.numeric(2)


def away(points, scale):
    """From the middle, far beyond any clip, in six numbers."""
    return scale * jnp.tile(points - 0.5, 3)


def many(points, scale):
    """In 5,000 numbers."""
    return scale * jnp.tile(points - 0.5, 2500)


def alike(apart, scale):
    """The same weight of every centre, and a residual that is as large."""
    return scale * jnp.ones_like(apart), 0.1 * scale * apart.sum(axis=-1)


def kernel_of(m):
    centres = np.random.default_rng(0).uniform(-0.2, 1.2, (K, m, 2)).astype(np.float32)
    return KernelSum(centres, np.full(K, 0.25), np.full(K, 5.0, np.float32))


def lags(each):
    cuts = np.tile([0.3, 0.7], (3, 2, 1))
    return LagTable(np.array([0.0, 2.0, 5.0]), cuts, np.linspace(0.5, 4.5, 9), each)


GROUPED = Table(WHOLE, (2, 3), 3.0, (None, np.array([1, 0, 1])))
SCALES, CLIP = np.ones(K, np.float32), np.linspace(0.1, 0.6, K)


@dataclass(frozen=True)
class Example:
    """A question with its noise; the same with more numbers, for the law of its noise.

    tight: relations under which some person attains the bound.
    """

    question: Question
    wide: Question
    noise: Any
    tight: tuple[str, ...] = ("add-remove", "replace-one")

    def release(self, question=None):
        return Release(question or self.question, self.noise, "a question")


EXAMPLES = {
    "cells": Example(CellCounts(3), CellCounts(180), Laplace(0.1)),
    "sides": Example(CellCounts((4, 1)), CellCounts((30_000, 1)), Laplace(2.0)),
    "tables": Example(
        Tables([Table(WINDOWS, (2, 2)), GROUPED, Table(Slabs.between(np.array([2.5])), (3, 1))]),
        Tables([Table(WINDOWS, (100, 150)), Table(WHOLE, (300, 300), 3.0)]),
        Gaussian(2.0),
        ("add-remove",),
    ),
    "clipped sums": Example(
        ClippedSums(away, 9 * SCALES, CLIP), ClippedSums(many, SCALES, CLIP), Gaussian(0.7)
    ),
    "kernel sums": Example(
        KernelSums(alike, kernel_of(4), CLIP),
        KernelSums(alike, kernel_of(1700), CLIP),
        Gaussian(1.3),
        ("add-remove",),
    ),
    "lags": Example(lags(7), lags(7), Laplace(0.4)),
}
every = pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES)


def test_every_question_has_an_example():
    shipped = {one for one in Question.registered if one.__module__.startswith("privtraj.")}
    assert shipped == {type(example.question) for example in EXAMPLES.values()}


def test_a_question_has_noise_of_its_kind_alone():
    with pytest.raises(InputError, match="Laplace"):
        Release(CellCounts(2), Gaussian(1.0), "counts")


# People ---------------------------------------------------------------------------------------

PLACES = [(0.0, 0.0), (1.0, 1.0), (0.5, 0.1), (0.4, 1.0)]


def persons(g, together):
    """Records (time, place) of people of up to g: all kinds of one and two, some of more."""
    rng = np.random.default_rng(g)
    records = list(itertools.product(range(K), PLACES))
    if g == 1:
        return [[one] for one in records]
    apart = [tuple((t, place) for t in range(g)) for place in PLACES]
    if together:
        apart += [tuple((2, place) for _ in range(g)) for place in PLACES]
        apart += [tuple(records[k] for k in rng.integers(len(records), size=g)) for _ in range(24)]
    else:
        for _ in range(24):
            times = rng.permutation(K)[: rng.integers(1, g + 1)]
            apart.append([(t, PLACES[rng.integers(len(PLACES))]) for t in times])
    return apart


def rows_of(*people):
    flat = [(who, *record) for who, records in enumerate(people) for record in records]
    points = np.array([place for _, _, place in flat], np.float32).reshape(-1, 2)
    times = np.array([t for _, t, _ in flat], float)
    return MemoryRows(points, times, people=np.array([who for who, *_ in flat], np.int64))


OTHERS = [[(0, (0.2, 0.9)), (1, (0.9, 0.9))], [(3, (0.4, 0.4))], [(3, (0.41, 0.4))]]


@every
@pytest.mark.parametrize("together", [False, True])
def test_no_person_moves_an_answer_by_more_than_is_paid_for(example, together):
    """Brute force: tables with a person, without, and with another instead of them."""
    question, power = example.question, example.noise.norm
    for g in range(1, K + 1):
        shape = PublicShape(WINDOWS, NUMBERS, Person(g, together and g > 1))
        scale = question.scale(example.noise, shape)
        question.check(shape, scale)
        event = example.release().event(shape)
        totals = []
        for person in [(), *persons(g, together)]:
            blocks = question.total(View(rows_of(*OTHERS, person), shape), scale)
            totals.append(np.concatenate([np.ravel(block) for block in blocks]).astype(float))
        without, *present = np.array(totals)
        moved = {"add-remove": present - without}
        moved["replace-one"] = np.concatenate([present - one for one in present])
        for adjacency, differences in moved.items():
            bound = event.sensitivity(adjacency)
            reached = np.linalg.norm(differences, power, axis=1).max() / (scale * bound)
            assert reached <= 1
            # nobody has a pair alone, and tables pay for records that meet in their windows
            loose = {LagTable: g == 1, Tables: g > 1 and not together}.get(type(question), False)
            if adjacency in example.tight and not loose:
                assert reached > 0.999


@every
def test_what_a_person_adds_does_not_depend_on_the_others(example):
    shape, scale = PublicShape(WINDOWS, NUMBERS, Person(2)), example.noise.scale

    def total(*people):
        return example.question.total(View(rows_of(*people), shape), scale)

    person = [(1, (0.3, 0.8)), (4, (0.9, 0.2))]
    alone = [a - b for a, b in zip(total(person), total(), strict=True)]
    beside = [a - b for a, b in zip(total(*OTHERS, person), total(*OTHERS), strict=True)]
    for one, other in zip(alone, beside, strict=True):
        # kernel sums are rounded once after they were added up: by less than 1 each
        rounding = int(isinstance(example.question, KernelSums))
        assert np.abs(np.asarray(one - other, float)).max() <= rounding


# Payment --------------------------------------------------------------------------------------


class Paid(noise.SeededSource):
    """Seeded words; remembers how many events the ledger had at every draw."""

    def __init__(self, ledger, seed=1):
        super().__init__(seed)
        self.ledger, self.seen = ledger, set()

    def words(self, count):
        self.seen.add(len(self.ledger.events))
        return super().words(count)


class Unread:
    """Rows that nobody may read."""

    def __getattr__(self, name):
        raise AssertionError(f"rows were asked for {name}")


def guard_over(rows, ledger, g=2, seed=1, **options):
    source = Paid(ledger, seed)
    return Guard(rows, PublicShape(WINDOWS, NUMBERS, Person(g)), ledger, source, **options), source


@every
def test_a_release_is_paid_for_before_anything_is_read_or_drawn(example):
    ledger = Ledger(80.0, 1e-3)
    guard, source = guard_over(rows_of(*OTHERS), ledger)
    for number in (1, 2):
        source.seen.clear()
        guard.ask(example.release())
        assert source.seen == {number}
    event = example.release().event(guard.shape)
    assert ledger.events == ((event, 1), (event, 1))
    assert event.person.records == 2
    if isinstance(event, GaussianSum):
        blocks = example.question.total(
            View(rows_of(), guard.shape), example.question.scale(example.noise, guard.shape)
        )
        draws = sum(block.size for block in blocks)
        assert math.isclose(event.slack, draws * noise.GAUSSIAN_TV_PER_DRAW, rel_tol=1e-9)
        assert event.noise_multiplier == example.noise.multiplier
    else:
        assert event.slack == 0
        assert event.epsilon == example.noise.epsilon


@every
def test_what_the_budget_does_not_cover_is_neither_read_nor_drawn(example):
    ledger = Ledger(0.01, 1e-9)
    guard, source = guard_over(Unread(), ledger)
    with pytest.raises(BudgetError):
        guard.ask(example.release())
    assert ledger.events == ()
    assert source.seen == set()


@every
def test_a_watcher_is_told_of_the_release_and_the_noisy_answer(example):
    told = []

    class Watcher:
        def released(self, release, shape, answer):
            told.append((release, shape, answer))

    guard, _ = guard_over(rows_of(*OTHERS), Ledger(80.0, 1e-3), watcher=Watcher())
    release = example.release()
    answer = guard.ask(release)
    assert told == [(release, guard.shape, answer)]


# Noise ----------------------------------------------------------------------------------------


def drawn(example, rows, monkeypatch, asks=2, question=None):
    """The noise of several answers, in standard deviations: asks lists of blocks (K, D)."""
    question = question or example.wide
    noisy, kind = [], type(question)
    answer = kind.answer

    def kept(self, blocks, scale):
        noisy.append(blocks)
        return answer(self, blocks, scale)

    monkeypatch.setattr(kind, "answer", kept)
    guard, _ = guard_over(rows, Generous(1.0, 1e-3), seed=5)
    exact = question.total(View(rows, guard.shape), example.noise.scale)
    monkeypatch.setattr(kind, "total", lambda self, view, scale: exact)  # it takes as long again
    for _ in range(asks):
        guard.ask(example.release(question))
    return [
        [np.asarray(a - b, float) / deviation(example) for a, b in zip(one, exact, strict=True)]
        for one in noisy
    ]


class Generous(Ledger):
    """Pays for everything, without adding it up."""

    def spend(self, event, times=1):
        self.events = (*self.events, (event, times))


def deviation(example):
    if isinstance(example.noise, Gaussian):
        return noise.GAUSSIAN_STD
    return math.sqrt(noise.laplace_variance(example.noise.epsilon))


def law(example):
    """Fourth moment of a draw of variance 1, and the chance that it is beyond 4."""
    if isinstance(example.noise, Gaussian):
        return 3.0, 2 * norm.sf(4)
    x = np.arange(1, 20_000)
    p = np.exp(-example.noise.epsilon * x)
    weights, size = p / (1 + 2 * p.sum()), x / deviation(example)
    return float(2 * weights @ size**4), float(2 * weights[size > 4].sum())


def standard_errors(draws, fourth):
    """How far the mean square of draws is from 1."""
    return abs(float(np.mean(draws**2)) - 1) * math.sqrt(draws.size / (fourth - 1))


def correlation(one, other):
    n = min(one.size, other.size)
    return abs(float(one.ravel()[:n] @ other.ravel()[:n])) / math.sqrt(n)


@every
def test_noise_has_its_law_in_every_block_and_is_independent(example, monkeypatch):
    fourth, beyond = law(example)
    asks = 60 if isinstance(example.question, LagTable) else 6
    answers = drawn(example, rows_of(*OTHERS), monkeypatch, asks)
    everything = np.concatenate([block.ravel() for blocks in answers for block in blocks])
    assert everything.size > 4000
    assert standard_errors(everything, fourth) < LIMIT
    assert abs(everything.mean()) * math.sqrt(everything.size) < LIMIT
    assert (np.diff(np.sort(np.unique(everything))).size + 1) > 8  # no constant
    far = np.count_nonzero(np.abs(everything) > 4)
    low, high = binom.ppf(RATE, everything.size, beyond), binom.isf(RATE, everything.size, beyond)
    assert low <= far <= high
    for block in map(np.concatenate, zip(*answers, strict=True)):
        parts = [block[:, :16], block[:, 16:], *np.array_split(block, min(len(block), K))]
        for part in parts:
            if part.size > 300:  # fewer are not normal enough for the limit
                assert standard_errors(part, fourth) < LIMIT + 40 / math.sqrt(part.size)
        half = block.shape[1] // 2
        assert correlation(block[:, :half], block[:, half : 2 * half]) < LIMIT
        assert correlation(block[:-1], block[1:]) < LIMIT
    first, second = (np.concatenate([b.ravel() for b in one]) for one in answers[:2])
    assert correlation(first, second) < LIMIT
    for one, other in itertools.combinations(answers[0], 2):
        assert correlation(one, other) < LIMIT


@every
def test_a_million_people_in_one_place_have_the_same_noise(example, monkeypatch):
    n = 1_100_000
    rows = MemoryRows(
        np.full((n, 2), 0.05, np.float32), np.zeros(n), people=np.arange(n, dtype=np.int64) // 2
    )
    question, shape = example.question, PublicShape(WINDOWS, NUMBERS, Person(2))
    total = question.total(View(rows, shape), example.noise.scale)
    assert max(int(np.abs(block).max()) for block in total) > 10**5 * example.noise.scale
    fourth, _ = law(example)
    answers = drawn(example, rows, monkeypatch, 12, question)
    everything = np.concatenate([block.ravel() for blocks in answers for block in blocks])
    assert standard_errors(everything, fourth) < LIMIT + 40 / math.sqrt(everything.size)


@every
def test_places_without_anybody_have_noise_too(example, monkeypatch):
    (blocks,) = drawn(example, rows_of(), monkeypatch, 1)
    for block in blocks:
        zeros = np.count_nonzero(block == 0) / block.size
        assert zeros < 0.9  # discrete Laplace noise of epsilon 2 is zero in 76 % of its draws
        assert (np.abs(block).sum(axis=1) > 0).all()


@pytest.mark.parametrize("name", ["clipped sums", "kernel sums"])
def test_sums_of_columns_that_are_no_numbers_are_refused_unpaid(name):
    axes = Axes((0, 3), (False,) * 2, (False,) * 2)
    ledger = Ledger(80.0, 1e-3)
    guard = Guard(Unread(), PublicShape(WINDOWS, axes, Person()), ledger, Paid(ledger))
    with pytest.raises(InputError, match="tables"):
        guard.ask(EXAMPLES[name].release())
    assert ledger.events == ()
