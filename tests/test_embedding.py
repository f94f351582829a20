"""Levels as coordinates: what a record becomes, and what levels a place gives back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privtraj.columns.axes import LEVEL_SCALE, Axes, Embedding

MIXED = Axes((0, 3, 0, 2), (False,) * 4, (False,) * 4)
axes_of = st.lists(st.sampled_from([0, 0, 2, 3, 7]), min_size=1, max_size=6).map(
    lambda levels: Axes(tuple(levels), (False,) * len(levels), (False,) * len(levels))
)


def points_of(axes, n, seed=0):
    unit = np.random.default_rng(seed).random((n, len(axes.levels)))
    return axes.centred(unit).astype(np.float32)


@given(axes_of, st.integers(1, 30), st.integers(0, 100))
def test_a_record_becomes_a_point_of_the_unit_cube_by_itself(axes, n, seed):
    """The proof of sums uses this and nothing else of a record's point."""
    points, embedding = points_of(axes, n, seed), Embedding(axes)
    together = embedding.of(points)
    assert together.shape == (n, embedding.width)
    assert together.dtype == np.float32
    assert together.min() >= 0
    assert together.max() <= 1
    alone = np.concatenate([embedding.of(row[None]) for row in points])
    np.testing.assert_array_equal(together, alone)
    others = points_of(axes, n, seed + 1)
    np.testing.assert_array_equal(embedding.of(np.append(points, others, axis=0))[:n], together)


def test_numbers_stay_and_every_category_has_one_coordinate_that_is_not_zero():
    points = points_of(MIXED, 50)
    made = Embedding(MIXED).of(points)
    np.testing.assert_array_equal(made[:, :2], points[:, [0, 2]])
    levels = MIXED.level_of(points.astype(np.float64))
    for block, axis in ((slice(2, 5), 1), (slice(5, 7), 3)):
        np.testing.assert_array_equal(made[:, block].argmax(axis=1), levels[:, axis])
        assert (np.sort(made[:, block], axis=1)[:, :-1] == 0).all()
        np.testing.assert_array_equal(made[:, block].max(axis=1), np.float32(LEVEL_SCALE))


@given(axes_of, st.integers(0, 100))
def test_people_of_records_are_the_records(axes, seed):
    points, embedding = points_of(axes, 20, seed), Embedding(axes)
    back = embedding.people(embedding.of(points).astype(np.float64), np.random.default_rng(seed))
    np.testing.assert_allclose(back, points, atol=1e-6)


def test_numbers_alone_are_as_they_are():
    axes = Axes.numeric(3)
    points = points_of(axes, 10)
    np.testing.assert_array_equal(Embedding(axes).of(points), points)
    np.testing.assert_array_equal(Embedding(axes).middle, [0.5] * 3)


def test_levels_are_drawn_as_often_as_shares_say():
    """Systematically: of 1,000 people of one place and of many, shares are met to 1 %."""
    embedding, rng = Embedding(MIXED), np.random.default_rng(0)
    place = np.array([0.2, 0.9, *(LEVEL_SCALE * np.array([0.7, 0.25, 0.05, 0.4, 0.6]))])
    people = embedding.people(np.tile(place, (1000, 1)), rng)
    levels = MIXED.level_of(people)
    np.testing.assert_allclose(np.bincount(levels[:, 1]) / 1000, [0.7, 0.25, 0.05], atol=0.01)
    np.testing.assert_allclose(np.bincount(levels[:, 3]) / 1000, [0.4, 0.6], atol=0.01)
    both = np.mean((levels[:, 1] == 0) & (levels[:, 3] == 1))
    assert both == pytest.approx(0.7 * 0.6, abs=0.03)  # independent of each other
    places = np.tile(place, (1000, 1))
    rising = np.linspace(0, 1, 1000)
    places[:, 5:7] = LEVEL_SCALE * np.stack([1 - rising, rising], axis=1)
    late = MIXED.level_of(embedding.people(places, rng))[:, 3]
    assert late.mean() == pytest.approx(0.5, abs=0.01)
    assert late[:100].mean() < 0.1
    assert late[-100:].mean() > 0.9


def test_the_variance_of_levels_is_that_of_drawn_people():
    embedding = Embedding(MIXED)
    place = np.array([[0.2, 0.9, *(LEVEL_SCALE * np.array([0.7, 0.2, 0.1, 0.5, 0.5]))]])
    people = embedding.people(np.repeat(place, 4000, axis=0), np.random.default_rng(1))
    blocks = embedding.of(people.astype(np.float32))[:, 2:]
    spread = ((blocks - place[:, 2:]) ** 2).sum(axis=1).mean()
    assert embedding.level_variance(place)[0] == pytest.approx(spread, rel=0.01)


def test_what_noise_made_of_a_place_still_has_levels():
    places = np.random.default_rng(0).normal(0, 1, (40, Embedding(MIXED).width))
    people = Embedding(MIXED).people(places, np.random.default_rng(0))
    np.testing.assert_allclose(MIXED.centred(people)[:, [1, 3]], people[:, [1, 3]])
    for share in Embedding(MIXED).shares(places):
        assert (share >= 0).all()
        np.testing.assert_allclose(share.sum(axis=1), 1)
