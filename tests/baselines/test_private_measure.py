"""The private measure mechanism: level budgets, consistency, depth."""

import numpy as np
import pytest

from methods import PrivateMeasure, consistent, depth, level_budgets, siblings
from privtraj.privacy.guard import Guard


@pytest.mark.parametrize("d", [1, 2, 3])
def test_children_sum_to_their_parents_exactly_and_are_not_negative(d):
    rng = np.random.default_rng(d)
    parents = np.where(rng.uniform(size=(3, 4**d)) < 0.3, 0, rng.uniform(0, 30, (3, 4**d)))
    counts = rng.integers(-10, 20, size=(3, 8**d)).astype(float)
    mass = consistent(parents, counts, d)
    assert mass.shape == counts.shape
    assert mass.min() >= 0
    np.testing.assert_allclose(mass[:, siblings(8, d)].sum(axis=-1), parents, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_all_children_of_a_cell_grow_or_all_shrink(d):
    rng = np.random.default_rng(d)
    parents = rng.uniform(0, 20, (2, 2**d))
    counts = rng.integers(-5, 20, size=(2, 4**d)).astype(float)
    moved = consistent(parents, counts, d) - np.maximum(counts, 0)
    change = moved[:, siblings(4, d)]
    assert ((change >= -1e-9).all(axis=-1) | (change <= 1e-9).all(axis=-1)).all()


def test_consistent_counts_stay_what_they_are():
    counts = np.arange(64.0)[None]
    parents = counts[:, siblings(8, 2)].sum(axis=-1)
    np.testing.assert_allclose(consistent(parents, counts, 2), counts)


def test_children_of_whom_none_is_counted_get_equal_parts():
    mass = consistent(np.array([[8.0]]), np.array([[-1.0, 0.0, -2.0, 0.0]]), 2)
    np.testing.assert_allclose(mass, 2.0)


def test_siblings_are_the_cells_of_one_block():
    np.testing.assert_array_equal(siblings(4, 2)[0], [0, 1, 4, 5])
    np.testing.assert_array_equal(np.sort(siblings(4, 2).ravel()), np.arange(16))


@pytest.mark.parametrize(("levels", "d"), [(1, 1), (4, 1), (5, 2), (3, 4)])
def test_level_budgets_sum_to_epsilon_and_are_the_best(levels, d):
    budgets = level_budgets(0.7, levels, d)
    assert budgets.sum() == pytest.approx(0.7)

    def error(each):
        return (2.0 ** ((d - 1) * np.arange(levels)) / each).sum()

    rng = np.random.default_rng(0)
    for _ in range(50):
        nearby = budgets * rng.uniform(0.7, 1.3, levels)
        assert error(budgets) <= error(nearby * 0.7 / nearby.sum()) + 1e-9


@pytest.mark.parametrize(
    ("people", "d", "levels"), [(1000, 1, 10), (1000, 2, 5), (1000, 8, 1), (1, 3, 1), (10**9, 2, 9)]
)
def test_leaves_are_about_as_many_as_people_times_epsilon(people, d, levels):
    assert depth(people, d, 1.0) == levels


def test_without_noise_leaves_hold_the_people_they_should(snapshots_of, silent):
    corners = np.array([[0.1, 0.1]] * 30 + [[0.9, 0.1]] * 10)

    class Silent(PrivateMeasure):
        @staticmethod
        def guard_class(rows, shape, ledger, source, **options):
            return Guard(rows, shape, ledger, silent(), **options)

    model = Silent(1.0, cells=8, points=40, seed=0).fit(snapshots_of([corners, corners]))
    low = model.particles[:, :, 0] < 1 / 8
    high = model.particles[:, :, 0] >= 7 / 8
    np.testing.assert_array_equal(low.sum(axis=1), 30)
    np.testing.assert_array_equal(high.sum(axis=1), 10)
    assert (model.particles[:, :, 1] < 1 / 8).all()


def test_the_certificate_adds_up_the_levels(snapshots_of, moving_blobs):
    certificate = (
        PrivateMeasure(1.0, cells=16).fit(snapshots_of(list(moving_blobs(3, 50, 2)))).certificate
    )
    head, levels = certificate.ledger
    assert levels["what"] == "people per cell at 4 levels"
    assert head["noise_epsilon"] + levels["noise_epsilon"] == pytest.approx(1, rel=1e-6)
