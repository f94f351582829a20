"""Pairs of one person's records: how far a person moves their sum, what it says, and its price."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from privtraj.base.errors import InputError
from privtraj.base.space import Slabs
from privtraj.columns.kinds import Axes
from privtraj.data.snapshots import Snapshots
from privtraj.privacy import noise
from privtraj.privacy import pairs as pairs_module
from privtraj.privacy.events import LaplaceCounts, Person
from privtraj.privacy.guard import Guard, Laplace, MemoryRows, PublicShape, Release, RepeatedRows
from privtraj.privacy.ledger import Ledger
from privtraj.privacy.pairs import KINDS, LagTable

WHAT = "how people persist"
EDGES = np.array([0.1, 0.4])


def thirds(d, each=1):
    """Thresholds that move with time."""
    low = np.linspace(0.2, 0.5, d * 3).reshape(3, d)
    return LagTable(np.array([0.0, 0.5, 1.0]), np.stack([low, low + 0.2], axis=-1), EDGES, each)


def rows_of(people, d):
    """People as lists of (time, point) in one table, whose order is nobody's."""
    records = [(k, *record) for k, person in enumerate(people) for record in person]
    order = np.random.default_rng(len(records)).permutation(len(records))
    who, times, points = zip(*(records[k] for k in order), strict=True) if records else ([],) * 3
    return MemoryRows(
        np.array(points, np.float32).reshape(-1, d),
        np.array(times, np.float64),
        people=np.array(who, np.int64),
    )


def summed(people, question):
    return question.sum_over(rows_of(people, question.n_features).repeated())


TIMES = st.one_of(st.sampled_from([0.0, 0.3, 0.3000001, 1.0, -1e308, 1e308]), st.floats(-2, 3))
PLACES = st.one_of(st.sampled_from([0.0, 1.0, 0.5]), st.floats(0, 1, width=32))


def person(d):
    return st.lists(st.tuples(TIMES, st.tuples(*[PLACES] * d)), max_size=12)


@st.composite
def neighbours(draw):
    """Others, two versions of one person, and a question."""
    d = draw(st.integers(1, 3))
    others = draw(st.lists(person(d), max_size=4))
    return others, draw(person(d)), draw(person(d)), thirds(d, draw(st.sampled_from([1, 7, 64])))


@settings(deadline=None)
@given(neighbours())
def test_a_person_moves_the_sum_by_the_weight_whatever_their_records(case):
    """However many, at equal times or beyond the range: pairs are averaged, not added up."""
    others, one, other, question = case
    without = summed(others, question)
    present, replaced = (summed([*others, who], question) for who in (one, other))
    weight = question.weight
    assert weight == question.each * question.n_features
    assert np.abs(present - without).sum() == (weight if len(one) > 1 else 0)
    assert np.abs(present - replaced).sum() <= 2 * weight
    assert (present >= without).all()


@settings(deadline=None)
@given(person(2), st.randoms())
def test_neither_the_order_of_records_nor_the_name_of_the_person_matters(one, random):
    question, mixed = thirds(2, 7), list(one)
    random.shuffle(mixed)
    np.testing.assert_array_equal(summed([one], question), summed([[], [], mixed], question))


def test_a_pair_is_counted_where_it_belongs():
    """Against a count by hand, pair by pair; weights of 60 need no rounding for 1 to 6 pairs."""
    rng = np.random.default_rng(0)
    question = thirds(2, 60)
    people = [
        [(float(rng.random()), tuple(rng.random(2).astype(np.float32))) for _ in range(size)]
        for size in (1, 2, 3, 4, 2)
    ]
    expected = np.zeros((3, 2, KINDS))
    for records in people:
        found = list(combinations(records, 2))
        for (t, x), (s, y) in found:
            lag = int(abs(t - s) > EDGES[0]) + int(abs(t - s) > EDGES[1])
            for k in range(2):
                first, second = (_third(question, when, z[k], k) for when, z in ((t, x), (s, y)))
                kind = 3 if first == second == 1 else abs(first - second)
                expected[lag, k, kind] += 60 / len(found)
    np.testing.assert_array_equal(summed(people, question).reshape(3, 2, KINDS), expected)


def _third(question, time, value, k):
    low, high = (np.interp(time, question.times, question.thresholds[:, k, j]) for j in (0, 1))
    return int(value > low) + int(value > high)


def test_people_are_summed_in_parts(monkeypatch):
    rng = np.random.default_rng(2)
    people = [[(t, (x,)) for t, x in rng.random((3, 2)).tolist()] for _ in range(50)]
    whole = summed(people, thirds(1, 64))
    monkeypatch.setattr(pairs_module, "PEOPLE_AT_ONCE", 7)
    np.testing.assert_array_equal(summed(people, thirds(1, 64)), whole)
    rows = rows_of(people, 1).repeated()
    assert thirds(1, 64).contributions(rows).shape == (50, 1, 3, KINDS)


def test_nobody_is_repeated_where_nobody_knows_whose_records_are():
    assert len(MemoryRows(np.zeros((4, 1), np.float32), np.zeros(4)).repeated().people) == 0
    empty = RepeatedRows(np.empty(0, np.int64), np.empty(0), np.empty((0, 2), np.float32))
    assert not thirds(2).sum_over(empty).any()


# The guard ------------------------------------------------------------------------------------


def guarded(rows, ledger, source=None, records=2, watcher=None):
    shape = PublicShape(Slabs.between(np.empty(0)), Axes.numeric(1), Person(records, True))
    return Guard(rows, shape, ledger, source or noise.SeededSource(0), watcher=watcher)


def test_a_question_that_does_not_fit_is_refused_before_it_is_paid_for():
    ledger = Ledger(1.0, 0.0)
    guard = guarded(rows_of([], 1), ledger)
    with pytest.raises(InputError, match="need thresholds for each"):
        guard.ask(Release(thirds(2), Laplace(0.1), WHAT))
    good = thirds(1)
    for change in (
        {"times": good.times[::-1]},
        {"thresholds": good.thresholds[:2]},
        {"thresholds": good.thresholds * np.nan},
        {"lag_edges": good.lag_edges[::-1]},
        {"each": 0},
    ):
        parts = {name: getattr(good, name) for name in ("times", "thresholds", "lag_edges", "each")}
        with pytest.raises(InputError, match="thirds need increasing times"):
            LagTable(**parts | change)
    assert ledger.events == ()


@pytest.mark.parametrize("each", [1, 64])
def test_the_noise_is_that_of_the_ledger_entry(each):
    """Mean square of 12,000 numbers without people; false alarms 1e-6 over seeds."""
    ledger = Ledger(1e4, 0.0)
    guard = guarded(rows_of([], 1), ledger)
    question = thirds(1, each)
    drawn = np.stack([guard.ask(Release(question, Laplace(0.05), WHAT)) for _ in range(1000)])
    event = ledger.events[0][0]
    off = (drawn**2).mean() / event.noise_variance - 1
    assert abs(off) < 4.9 * math.sqrt(5 / drawn.size)  # the fourth moment of Laplace is 6 s^4
    between = np.corrcoef(drawn.reshape(1000, -1).T)[np.triu_indices(12, 1)]
    assert (1000 * between**2).sum() < chi2(66).isf(1e-6)


def test_a_person_costs_the_weight_and_not_their_records():
    for records in (2, 50):
        event = LaplaceCounts(0.01, WHAT, 0.0, records, True, weight=20)
        assert event.pair("add-remove").responses == (0.2, 1)
        assert event.pair("replace-one").responses == (0.2, 2)
        ledger = Ledger(0.2, 0.0)
        ledger.spend(event)
        assert ledger.spent() == pytest.approx(0.2)
        assert event.to_dict("replace-one")["epsilon"] == pytest.approx(0.4)


def test_records_that_are_kept_keep_their_person():
    """Of three records two are chosen; they are a pair of their person, and of nobody else."""
    snapshots = Snapshots.from_arrays(
        np.tile([0.0, 0.5, 1.0], 20),
        np.repeat(np.arange(20) / 20, 3),
        bounds=[(0, 1)],
        time_range=(0, 1),
        person=np.repeat(np.arange(20), 3),
        records_per_person=2,
        seed=0,
    )
    found = snapshots._rows.repeated()
    assert np.bincount(found.people).tolist() == [2] * 20
    np.testing.assert_allclose(found.points[:, 0], found.people / 20, rtol=1e-6)


def test_people_without_pairs_contribute_nothing():
    question = thirds(2, each=5)
    alone = RepeatedRows(
        np.array([0, 1, 1]), np.array([0.1, 0.2, 0.3]), np.zeros((3, 2), np.float32)
    )
    parts = question.contributions(alone)
    assert not parts[0].any()
    assert parts[1].sum() == 2 * 5
