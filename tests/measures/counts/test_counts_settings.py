"""Cells chosen from public numbers: within limits everywhere, and in the right direction."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj.measures.counts import constants
from privtraj.measures.counts.constants import MOST_CELLS_PER_TIME
from privtraj.measures.counts.settings import cells_per_side, counts_settings, expected_error

BUDGETS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # epsilon

sizes = st.floats(40, 1e5)
dimensions = st.integers(1, 10)
areas = st.floats(1e-4, 1.0)  # share of the box that people occupy


@settings(max_examples=100)
@given(sizes, dimensions, st.floats(0.5, 8), areas)
def test_all_settings_are_within_the_limits(people, d, epsilon, area):
    made = counts_settings(people, d, epsilon, area=area)
    assert made.epsilon == epsilon
    assert np.isfinite(made.worth)
    assert made.worth >= 0
    assert made.cells_per_side >= 2
    assert made.cells_per_side**d <= max(MOST_CELLS_PER_TIME, 2**d)
    assert isinstance(made.particles, int)
    assert made.particles >= 2
    assert made.summary()["steps"] == 0


@pytest.mark.parametrize("d", [1, 2, 3, 6, 10])
@pytest.mark.parametrize("people", [40, 130, 600, 3000, 20_000, 100_000])
def test_more_budget_never_buys_less(d, people):
    bought = [counts_settings(people, d, epsilon).cells_per_side for epsilon in BUDGETS]
    assert all(a <= b for a, b in pairwise(bought))


def test_a_thousand_times_the_people_get_more_cells():
    few, many = (counts_settings(people, 2, 1.0).cells_per_side for people in (100, 1e5))
    assert many > few


@settings(max_examples=50)
@given(sizes, dimensions, st.floats(0.5, 8), st.integers(2, 700))
def test_forced_particles_are_honoured(people, d, epsilon, particles):
    assert counts_settings(people, d, epsilon, particles=particles).particles == particles


@pytest.mark.parametrize(("d", "cells"), [(1, 1000), (2, 7), (3, 50), (10, 2)])
def test_forced_cells_are_honoured(d, cells):
    assert counts_settings(600, d, 1.0, cells=cells).cells_per_side == cells


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
    width = constants.USUAL_WIDTH
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
    told = [counts_settings(3000, d, 1.0, area=area).cells_per_side for area in (1.0, 1e-3)]
    assert told[0] == counts_settings(3000, d, 1.0).cells_per_side < told[1]
