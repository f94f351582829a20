"""Signs in a released model that a range misses the data; none of people who are spread."""

from dataclasses import replace

import numpy as np
import pytest

from mixed_models import build, of_particles
from privtraj.assess.ranges import WIDEST, doubts, pile_up, timing
from privtraj.columns.declared import declared_columns

# At the bounds --------------------------------------------------------------------------------

PLANE = declared_columns(None, None, columns={"x": (0, 1), "y": (0, 1)})


def piled(people, resolution=0.0, weights=None):
    """Of people (1, n, 2) that were counted in cells of this side."""
    told = {"settings": {"measure": "counts"}, "diagnostics": {"cell_side": [resolution]}}
    pair = np.repeat(people, 2, axis=0)  # a model has two times
    weights = np.ones(people.shape[:2]) if weights is None else weights
    return pile_up(of_particles(PLANE, pair, np.repeat(weights, 2, axis=0), **told))


@pytest.mark.parametrize("resolution", [0.0, 0.05, 0.2, 0.5])
def test_evenly_spread_people_are_not_piled_up(resolution):
    even = np.random.default_rng(1).random((1, 4000, 2))
    assert piled(even, resolution).excess < 0.05  # a deviation is 0.01 at most
    assert piled(even, resolution).wall <= WIDEST


@pytest.mark.parametrize("share", [0.3, 0.98])
def test_a_pile_is_found_at_its_bound(share):
    rng = np.random.default_rng(2)
    people = rng.normal(0.5, 0.1, (1, 4000, 2))
    moved = rng.random(4000) < share
    people[0, moved, 1] = 1 - 0.01 * rng.random(moved.sum())
    found = piled(people)
    assert (found.column, found.end) == ("y", "upper")
    assert found.share == pytest.approx(share, abs=0.03)
    assert found.excess == pytest.approx(share, abs=0.03)


def test_people_without_weight_do_not_count():
    people, weights = np.zeros((1, 10, 2)), np.ones((1, 10))
    people[0, 2:], weights[0, :2] = 0.5, 1e-9
    assert piled(people, weights=weights).excess < 1e-6


# Doubts about a model -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    return build()


def at(model, name, place):
    particles = model.particles.copy()
    particles[..., model.features.index(name)] = place
    return replace(model, particles=particles)


def test_people_who_are_spread_are_no_doubt(model):
    assert doubts(model) == ()
    assert doubts(at(model, "hb", 0.5)) == ()


@pytest.mark.parametrize(("place", "end"), [(0.0, "lower"), (0.99, "upper")])
def test_everybody_at_a_bound(model, place, end):
    (doubt,) = doubts(at(model, "hb", place))
    assert doubt.sentence.startswith(f"100 % of the released people are at the {end} bound of 'hb'")


def test_whole_numbers_may_all_be_none(model):
    assert doubts(at(model, "kids", 0.0)) == ()


def test_cells_say_how_near_is_at_a_bound(model):
    told = {"settings": {"measure": "counts"}, "diagnostics": {"cell_side": [0.1, None, 0.2]}}
    found = pile_up(at(replace(model, **told), "hb", 0.15))
    assert (found.column, found.wall, found.share) == ("hb", 0.2, pytest.approx(1.0))


def counted(model, people, noise=1.0):
    lengths = [1.0] * len(people)
    told = {"people_per_time": people, "people_noise": noise, "people_lengths": lengths}
    return replace(model, diagnostics={**model.diagnostics, **told})


def test_everybody_in_one_window(model):
    (doubt,) = doubts(counted(model, [970.0, 10.0, 10.0, 5.0]))
    assert doubt.sentence.startswith("97 % of the released people are in one of 4 windows of time")
    assert doubts(counted(model, [300.0, 400.0, 300.0, 200.0])) == ()
    noisy = counted(model, [970.0, 10.0, 10.0, 5.0], noise=200.0)
    assert doubts(noisy) == (), "it may be noise"


def test_even_times_are_good(model):
    assert timing(counted(model, [500.0, 480, 520], 10.0)).off < 0.05
    assert 0 < timing(counted(model, [100.0, 300, 900], 10.0)).off < 0.6


def test_everybody_at_one_end_is_seen_through_the_noise(model):
    noisy = [40.0, 25, 38, 31, 5980]
    found = timing(counted(model, noisy, 20.0))
    assert found.end == -1
    assert found.off > 0.95
    assert timing(counted(model, noisy[::-1], 20.0)).end == 0
    inside = timing(counted(model, [3.0, 6000, 2, 4, 5], 3.0))
    assert inside.end is None
    assert inside.empty == pytest.approx(0.8)
