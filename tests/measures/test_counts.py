"""Counts: how fine cells may be, and how concentrated people are."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj import Snapshots, TrajectorySynthesizer
from privtraj.measures import counts as module
from privtraj.measures.base import HEAD_COUNT, shrunk_counts
from privtraj.measures.cells import MOST_CELLS_PER_TIME
from privtraj.measures.counts import CELLS, cells_per_side, expected_error
from privtraj.measures.windows import looked
from privtraj.privacy.noise import laplace_variance

BUDGETS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # epsilon

sizes = st.floats(40, 1e5)
dimensions = st.integers(1, 10)
areas = st.floats(1e-4, 1.0)  # share of the box that people occupy


@settings(max_examples=100)
@given(sizes, dimensions, st.floats(0.5, 8), areas)
def test_all_settings_are_within_the_limits(people, d, epsilon, area):
    assert cells_per_side(people, d, epsilon, area) >= 2
    assert cells_per_side(people, d, epsilon, area) ** d <= max(MOST_CELLS_PER_TIME, 2**d)


@pytest.mark.parametrize("d", [1, 2, 3, 6, 10])
@pytest.mark.parametrize("people", [40, 130, 600, 3000, 20_000, 100_000])
def test_more_budget_never_buys_less(d, people):
    bought = [cells_per_side(people, d, epsilon) for epsilon in BUDGETS]
    assert all(a <= b for a, b in pairwise(bought))


def test_a_thousand_times_the_people_get_more_cells():
    few, many = (cells_per_side(people, 2, 1.0) for people in (100, 1e5))
    assert many > few


@settings(max_examples=200)
@given(sizes, st.integers(1, 3), st.floats(0.01, 64), areas)
def test_cells_are_even_and_have_the_least_error_of_those_allowed(people, d, epsilon, area):
    side = cells_per_side(people, d, epsilon, area)
    assert isinstance(side, int)
    assert side % 2 == 0
    least = expected_error(side, people, d, epsilon, area)
    for other in range(2, 513, 2):
        if other**d <= MOST_CELLS_PER_TIME:
            assert least < 1.1 * expected_error(other, people, d, epsilon, area)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("people", [40, 300, 3000])
def test_the_least_error_falls_with_the_budget_and_sides_grow_without_jumps(d, people):
    budgets = np.geomspace(0.1, 16, 60)
    sides = [cells_per_side(people, d, epsilon) for epsilon in budgets]
    errors = [expected_error(g, people, d, e) for g, e in zip(sides, budgets, strict=True)]
    assert all(a > b for a, b in pairwise(errors))
    assert all(b <= max(a + 2, 1.34 * a) for a, b in pairwise(sides))


def test_few_people_in_three_features_are_not_counted_in_cells_that_noise_fills():
    """Twelve cells a side for 40 people at epsilon 2 were worth one to three people."""
    assert cells_per_side(40, 3, 1.7) <= 6


@pytest.mark.parametrize("d", [1, 2, 3])
def test_concentrated_people_are_counted_as_others_in_a_smaller_box(d):
    width = module.USUAL_WIDTH
    one, other = (expected_error(g, 500, d, 1.0, (width * s) ** d) for g, s in ((20, 1), (40, 0.5)))
    assert other == pytest.approx(one / 4)


@settings(max_examples=200)
@given(sizes, dimensions, st.floats(0.01, 64), areas, areas)
def test_people_who_occupy_less_of_the_box_never_get_fewer_cells(people, d, epsilon, one, other):
    small, large = (cells_per_side(people, d, epsilon, area) for area in sorted([one, other]))
    assert small >= large


@settings(max_examples=200)
@given(st.tuples(sizes, sizes), dimensions, st.floats(0.01, 64), areas)
def test_more_people_never_get_fewer_cells(people, d, epsilon, area):
    few, many = (cells_per_side(n, d, epsilon, area) for n in sorted(people))
    assert few <= many


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_area_matters_and_is_the_whole_box_unless_told(d):
    told = [cells_per_side(3000, d, 1.0, area) for area in (1.0, 1e-3)]
    assert told[0] == cells_per_side(3000, d, 1.0) < told[1]


# The main release -------------------------------------------------------------------------------


class Answers(dict):
    """What was released, and the event that paid for it, by name."""

    def released(self, release, shape, answer):
        self[release.what] = answer, release.event(shape)


def test_people_and_their_noise_are_those_of_the_head_count_and_all_cells(monkeypatch):
    """Each weighted by the other's variance; and cells are chosen and read by the noise that was
    paid for, of people as wide as the look has shown."""
    told, seen, rng = Answers(), {}, np.random.default_rng(0)

    def spied(name):
        original = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *a: seen.setdefault(name, a) and original(*a))

    spied("cells_per_side")
    spied("estimate")
    measured = module.Counts.measured
    monkeypatch.setattr(
        module.Counts, "measured", lambda *a: seen.setdefault("view", a[1]) and measured(*a)
    )
    points = np.clip(0.4 + 0.1 * rng.standard_normal((900, 2)), 0, 1)
    snapshots = Snapshots.from_arrays(
        rng.random(900), points, bounds=[(0, 1)] * 2, time_range=(0, 1)
    )
    made = TrajectorySynthesizer(1.0, 0.0, measure="counts", particles=8, seed=0)
    model = made.fit(snapshots, watcher=told)
    (heads, head), (cells, paid) = told[HEAD_COUNT], told[CELLS]
    typical, d, epsilon, area = seen["cells_per_side"]
    assert epsilon == seen["estimate"][2] == paid.epsilon
    assert area == pytest.approx((12 * seen["view"].windows.choice.variance / d) ** (d / 2))
    of_head, of_cells = laplace_variance(head.epsilon), laplace_variance(paid.epsilon)
    of_cells *= cells.shape[1]
    expected = (1 / of_head + 1 / of_cells) ** -0.5
    assert model.diagnostics["people_noise"] == pytest.approx(expected)
    people = shrunk_counts(heads[:, 0].astype(float), 2 / head.epsilon**2)
    stiffer = seen["view"].windows.choice.stiffer
    assert typical == pytest.approx(
        np.median(people) / (stiffer[0, 2] if len(stiffer) else 1) ** 0.5
    )
    summed = shrunk_counts(cells.sum(axis=1).astype(float), of_cells)
    together = (people / of_head + summed / of_cells) / (1 / of_head + 1 / of_cells)
    np.testing.assert_allclose(model.diagnostics["people_per_time"], together)


def test_a_survey_is_read_by_the_noise_that_it_was_paid_for(monkeypatch):
    """Windows set by hand: how wide people are is told by the survey, for their cells."""
    told, seen, rng = Answers(), [], np.random.default_rng(0)
    original = module.cells_per_side
    monkeypatch.setattr(module, "cells_per_side", lambda *a: seen.append(a) or original(*a))
    points = np.clip(0.4 + 0.1 * rng.standard_normal((900, 2)), 0, 1)
    snapshots = Snapshots.from_arrays(
        rng.random(900), points, bounds=[(0, 1)] * 2, time_range=(0, 1)
    )
    made = TrajectorySynthesizer(1.0, 0.0, measure="counts", windows=3, particles=8, seed=0)
    made.fit(snapshots, watcher=told)
    counts, paid = told[module.SURVEY]
    side = round(counts.shape[1] ** 0.5)
    look = looked(counts, side, 2, laplace_variance(paid.epsilon))
    assert seen[0][-1] == pytest.approx(6 * look.variance)
    assert look.variance == pytest.approx(2 * 0.1**2, rel=0.5)
