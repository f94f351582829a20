"""Cells crossed with levels: how many have each combination, where they are, and what is released.

Statistical tests state their false-alarm rate; their seeds are fixed.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privtraj.base.space import Slabs
from privtraj.columns.axes import Axes
from privtraj.measures.counts.crossed import by_combination, held_cells, people_of, projected
from privtraj.measures.counts.fit import fit_counts
from privtraj.measures.counts.settings import cells_per_side, counts_settings
from privtraj.measures.counts.survey import surveyed_area
from privtraj.privacy import noise
from privtraj.privacy.events import Person
from privtraj.privacy.guard import Guard
from privtraj.privacy.ledger import Ledger
from privtraj.privacy.questions import CellCounts, Laplace, Release
from privtraj.privacy.rows import MemoryRows, PublicShape

T = 4
MIXED = Axes((3, 0, 2), (False,) * 3, (False,) * 3)


def guard_over(points, times, axes, seed=0, epsilon=8.0):
    shape = PublicShape(Slabs.around(np.arange(float(T))), axes, Person())
    rows = MemoryRows(np.asarray(points, np.float32), np.asarray(times, float))
    return Guard(rows, shape, Ledger(epsilon, 1e-3), noise.SeededSource(seed))


def two_groups(n=2000, seed=0):
    """Level 0 of the first category at 0.2, level 1 at 0.8, level 2 nobody; the other by chance."""
    rng = np.random.default_rng(seed)
    times = rng.integers(0, T, n)
    first = (rng.random(n) < 0.2 + 0.15 * times).astype(int)
    number = np.clip(np.where(first == 0, 0.2, 0.8) + 0.04 * rng.standard_normal(n), 0, 1)
    other = (rng.random(n) < 0.3).astype(int)
    return np.column_stack([(first + 0.5) / 3, number, (other + 0.5) / 2]), times


def fitted(axes=MIXED, data=None, **options):
    points, times = data or two_groups()
    guard = guard_over(points, times, axes)
    settings = counts_settings(
        len(times) / T, axes.n_numbers, 1.0, levels=axes.combinations, **options
    )
    people = np.bincount(times.astype(int), minlength=T).astype(float)
    return guard, fit_counts(guard, people, settings, np.random.default_rng(0), np.ones(T - 1))


def test_counts_of_a_combination_are_those_of_its_people(silent):
    points, times = two_groups(300)
    guard = guard_over(points, times, MIXED)
    guard._source = silent()
    tables, levels = by_combination(
        guard.ask(Release(CellCounts(MIXED.sides(4)), Laplace(1.0), "cells")), MIXED, 4
    )
    assert levels.tolist() == [[a, b] for a in range(3) for b in range(2)]
    found = MIXED.level_of(np.asarray(points))
    for table, (a, b) in zip(tables, levels, strict=True):
        own = (found[:, 0] == a) & (found[:, 2] == b)
        cells = np.minimum((points[own, 1].astype(np.float32) * 4).astype(int), 3)
        wanted = np.zeros((T, 4), int)
        np.add.at(wanted, (times[own], cells), 1)
        np.testing.assert_array_equal(table, wanted)


@given(
    st.lists(st.floats(-100, 100), min_size=3, max_size=3),
    st.floats(0.1, 200),
)
def test_projected_numbers_are_the_nearest_that_are_possible(values, total):
    (found,) = projected(np.array([values]), np.array([total]))
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(total)
    rng = np.random.default_rng(0)
    others = rng.dirichlet(np.ones(3), 200) * total
    away = ((others - values) ** 2).sum(axis=1)
    assert ((found - values) ** 2).sum() <= away.min() + 1e-6


def test_combinations_without_people_are_not_filled_by_noise():
    """Twenty combinations, four with people: the others get under 4 % together, over ten seeds."""
    true = np.zeros((6, 20))
    true[:, :4] = [200, 120, 50, 30]
    people = true.sum(axis=1)
    for seed in range(10):
        noisy = true + np.random.default_rng(seed).normal(0, 12, true.shape)
        found = people_of(noisy, 144.0, people, np.ones(5))
        assert found[:, 4:].sum() < 0.04 * people.sum()
        np.testing.assert_allclose(found.sum(axis=1), people)
        np.testing.assert_allclose(found[:, :4].mean(axis=0), true[0, :4], atol=25)


def test_cells_that_hold_anybody_are_found_by_all_combinations_together():
    rng = np.random.default_rng(0)
    tables = rng.laplace(0, 1.0, (6, 5, 16 * 16)).round().astype(int)
    grid = tables.reshape(6, 5, 16, 16)
    grid[:, :, 3:5, 7] += 2
    held = held_cells(tables, 16, 1.0).reshape(16, 16)
    assert held[2:6, 6:9].all()
    assert held.sum() < 40
    nobody = rng.laplace(0, 1.0, (6, 5, 256)).round().astype(int)
    assert held_cells(nobody + 1, 16, 1.0).all()


def test_shares_of_levels_follow_over_time():
    """Ten standard errors of the noise are 0.1: no seed fails."""
    _, made = fitted()
    levels = MIXED.level_of(made.particles)
    for t in range(T):
        share = made.weights[t] @ (levels[t, :, 0] == 1)
        assert share == pytest.approx(0.2 + 0.15 * t, abs=0.07)
        assert made.weights[t] @ (levels[t, :, 0] == 2) < 0.02
        assert made.weights[t] @ (levels[t, :, 2] == 1) == pytest.approx(0.3, abs=0.07)


def test_groups_with_different_numbers_do_not_mix():
    _, made = fitted()
    levels = MIXED.level_of(made.particles)
    number = made.particles[:, :, 1]
    for group, high in ((0, False), (1, True)):
        own = np.where(levels[:, :, 0] == group, made.weights, 0.0)
        assert own[(number > 0.5) != high].sum() < 0.03 * own.sum()
    assert made.weights[(number > 0.35) & (number < 0.65)].sum() < 0.05 * T


def test_particles_have_definite_levels_and_all_that_marginals_have():
    guard, made = fitted(particles=200)
    np.testing.assert_allclose(MIXED.centred(made.particles), made.particles)
    assert made.particles.shape == (T, 200, 3)
    np.testing.assert_allclose(made.weights.sum(axis=1), 1)
    assert (made.bandwidth >= 0).all()
    assert (made.resolution > 0).all()
    assert len(made.diagnostics["significant_share"]) == T
    ((event, _),) = guard.ledger.events
    assert event.what == "people per cell"


def test_tables_without_numbers_have_shares_alone():
    points, times = two_groups()
    axes = Axes((3, 2), (False,) * 2, (False,) * 2)
    _, made = fitted(axes, (points[:, [0, 2]], times))
    levels = axes.level_of(made.particles)
    for t in range(T):
        share = made.weights[t] @ (levels[t, :, 0] == 1)
        assert share == pytest.approx(0.2 + 0.15 * t, abs=0.05)
        assert made.weights[t] @ (levels[t, :, 0] == 2) < 0.01


def test_people_of_a_rare_level_are_where_the_others_are():
    """Forty people anywhere among 4,000 do not stand out in any cell."""
    rng = np.random.default_rng(1)
    times = rng.integers(0, T, 4000)
    rare = np.arange(4000) < 40
    number = np.clip(0.3 + 0.05 * rng.standard_normal(4000), 0, 1)
    axes = Axes((2, 0), (False,) * 2, (False,) * 2)
    points = np.column_stack([(rare + 0.5) / 2, number])
    _, made = fitted(axes, (points, times), cells=64)
    own = np.where(axes.level_of(made.particles)[:, :, 0] == 1, made.weights, 0.0)
    away = np.abs(made.particles[:, :, 1] - 0.3) > 0.2
    assert own[away].sum() <= 0.2 * own.sum()


# How finely -----------------------------------------------------------------------------------


@given(st.integers(1, 4), st.integers(1, 5000), st.floats(50, 1e5), st.floats(0.05, 8))
def test_cells_times_levels_stay_within_what_is_counted(d, levels, people, epsilon):
    side = cells_per_side(people, d, epsilon, 1.0, levels)
    assert side == 2 or side**d * levels <= 2**18
    assert side <= cells_per_side(people, d, epsilon)


def test_the_survey_looks_at_numbers_and_at_nothing_where_there_are_none():
    points, times = two_groups()
    people = np.bincount(times, minlength=T).astype(float)
    guard = guard_over(points, times, MIXED)
    alone = guard_over(points[:, [1]], times, Axes.numeric(1))
    assert surveyed_area(guard, people) == surveyed_area(alone, people)
    levels = guard_over(points[:, [0]], times, Axes((3,), (False,), (False,)))
    assert surveyed_area(levels, people) == 1.0
    assert levels.ledger.events == ()
