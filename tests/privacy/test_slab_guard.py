"""A guard in slabs: what it counts, and what it pays for people with several records."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privtraj as pt
from privtraj.base.errors import InputError
from privtraj.base.space import Slabs
from privtraj.privacy.guard import (
    PARTS,
    CellCounts,
    Gaussian,
    Guard,
    Laplace,
    MemoryRows,
    Release,
    parts_of,
)
from privtraj.privacy.ledger import Ledger
from privtraj.privacy.noise import EPSILON_RANGE
from privtraj.privacy.sums import ClippedSums


@pytest.fixture
def rows():
    times = np.repeat(np.arange(6.0), [3, 1, 0, 4, 2, 5])
    points = np.random.default_rng(0).random((len(times), 2)).astype(np.float32)
    shuffled = np.random.default_rng(1).permutation(len(times))
    return MemoryRows(points[shuffled], times[shuffled])


def test_slabs_count_the_rows_of_their_pieces(rows):
    whole = rows.cell_counts(Slabs.around(np.arange(6.0)), (4, 4))
    counts = rows.cell_counts(Slabs.between(np.array([2.5, 4.5])), (4, 4))
    np.testing.assert_array_equal(counts, [whole[:3].sum(0), whole[3:5].sum(0), whole[5]])
    assert counts.sum() == 15
    some = Slabs(np.array([0.5, 2.5, 4.5]), np.array([1, -1, 0, 1]))
    np.testing.assert_array_equal(
        rows.cell_counts(some, (4, 4)), [whole[3:5].sum(0), whole[0] + whole[5]]
    )


def test_rows_are_sorted_by_slab_and_those_of_none_are_left_out(rows):
    some = Slabs(np.array([0.5, 2.5, 4.5]), np.array([1, -1, 0, 1]))
    found = rows.in_slabs(some)
    assert found.slabs.tolist() == [0] * 6 + [1] * 8
    middle = rows.points[(rows.times > 2.5) & (rows.times < 4.5)]
    np.testing.assert_array_equal(found.points[:6], middle)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=6, unique=True), st.floats(-6, 6))
def test_a_record_is_in_one_slab_by_its_time_alone(edges, time):
    slabs = Slabs.between(np.sort(edges))
    alone = MemoryRows(np.full((1, 1), 0.5, np.float32), np.array([time]))
    assert slabs.of([time])[0] == sum(edge < time for edge in edges)
    assert alone.cell_counts(slabs, (3,)).sum() == 1
    assert alone.in_slabs(slabs).slabs.tolist() == slabs.of([time]).tolist()


def guard_over(snapshots, silent, epsilon=100.0):
    return snapshots.guarded(Guard, Ledger(epsilon, 1e-5), silent())


def test_answers_are_those_of_the_slabs(snapshots_of, silent):
    clouds = [np.full((n, 1), 0.5) for n in (3, 1, 4)]
    guard = guard_over(snapshots_of(clouds), silent).in_slabs(Slabs.between(np.array([1.5])))
    assert guard.n_times == 2
    np.testing.assert_array_equal(
        guard.ask(Release(CellCounts(1), Laplace(1.0), "people"))[:, 0], [4, 4]
    )


@pytest.mark.parametrize(
    ("edges", "numbers"),
    [([1.0], [0]), ([2.0, 1.0], [0, 1, 2]), ([1.0, 1.0], [0, 1, 2]), ([1.0], [0, 2]),
     ([1.0], [1, 2]), ([1.0], [-1, -1])],
)  # fmt: skip
def test_slabs_that_are_none_are_refused(edges, numbers, snapshots_of, silent):
    guard = guard_over(snapshots_of([np.full((2, 1), 0.5)] * 3), silent)
    with pytest.raises(InputError, match="slabs"):
        guard.in_slabs(Slabs(np.array(edges), np.array(numbers)))


def two_records_each(bins=4):
    """Every person has two records, in neighbouring bins, which a slab brings together."""
    people = np.repeat(np.arange(40), 2)
    times = np.tile([0.0, 1.0], 40) + 2 * (np.arange(80) // 2 % (bins // 2))
    return pt.Snapshots.from_arrays(
        times,
        np.full((80, 1), 0.5),
        bounds=[(0, 1)],
        bins=np.arange(float(bins)),
        person=people,
        records_per_person=2,
    )


def test_records_that_meet_in_a_slab_are_paid_for_together(silent):
    """Two vectors of norm c in one bin move a sum by 2 c, in two bins by sqrt(2) c."""
    guard = guard_over(two_records_each(), silent)
    slabs = guard.in_slabs(Slabs.between(np.array([1.5])))
    assert guard.sum_event(1, 3.0, "sums").sensitivity("add-remove") == pytest.approx(math.sqrt(2))
    assert slabs.sum_event(1, 3.0, "sums").sensitivity("add-remove") == 2
    slabs.ask(Release(CellCounts(2), Laplace(0.5), "cells"))
    (event, _), *_ = slabs.ledger.events
    assert event.together


def test_a_person_moves_a_slab_by_what_was_paid(silent):
    """Without noise: the sum over a slab with and without one person differs by 2 c, not more."""

    def answer(people):
        times = np.repeat([0.0, 1.0], people)
        who = np.tile(np.arange(people), 2)
        snapshots = pt.Snapshots.from_arrays(
            times, np.ones((2 * people, 1)), bounds=[(0, 1)], bins=[0.0, 1.0, 2.0],
            person=who, records_per_person=2,
        )  # fmt: skip
        guard = guard_over(snapshots, silent).in_slabs(Slabs.between(np.array([1.5])))
        sums = guard.ask(
            Release(
                ClippedSums(
                    lambda points, at: points - at, np.zeros((2, 1), np.float32), np.ones(2)
                ),
                Gaussian(3.0),
                "sums",
            )
        )
        event, _ = guard.ledger.events[-1]
        return sums, event.sensitivity("add-remove")

    (with_one, paid), (without, _) = answer(9), answer(8)
    moved = np.linalg.norm(with_one - without)
    assert moved == pytest.approx(2.0, rel=1e-3)
    assert moved <= paid * (1 + 1e-6)


def test_a_plan_in_slabs_covers_people_with_several_records():
    model = pt.TrajectorySynthesizer(8.0, 1e-5, seed=1, windows=2).fit(two_records_each())
    assert all(entry["together"] for entry in model.certificate.ledger)
    model.certificate.verify()


def test_people_are_counted_where_their_records_may_meet(silent):
    """Whoever has two records is half here and half there; whoever has one is here."""
    snapshots = pt.Snapshots.from_arrays(
        np.array([0.0, 2.0, *np.zeros(10)]),
        np.full((12, 1), 0.3),
        bounds=[(0, 1)],
        bins=np.arange(3.0),
        person=np.array([0, 0, *range(1, 11)]),
        records_per_person=2,
    )
    guard = guard_over(snapshots, silent)
    asked = Release(CellCounts(1), Laplace(0.5), "people")
    np.testing.assert_array_equal(guard.ask(asked)[:, 0], [11, 0, 1])  # records, apart
    halves = guard.in_slabs(Slabs.between(np.array([1.5])))
    np.testing.assert_allclose(halves.ask(asked)[:, 0], [10.5, 0.5])
    assert halves.ledger.events[-1][0].sensitivity("add-remove") == 1


@pytest.mark.parametrize(("epsilons", "parts"), [(0.5, 1), (1, 1), (3.5, 3), (1e6, PARTS)])
def test_a_person_has_no_more_parts_than_there_is_noise_for(epsilons, parts):
    assert parts_of(epsilons * EPSILON_RANGE[0]) == parts
