"""Checks of a model that can fail: ranges that miss the data, gaps between cells, false groups."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest

import privtraj as pt
from privtraj.report.false_detail import fewest_told, gap, small_groups
from privtraj.report.page_data import sampled
from privtraj.report.verdicts import verdicts


def grades(model):
    return {v.name: v for v in verdicts(model, sampled(model).people)}


def fitted(times, points, bounds, time_range, **settings):
    snapshots = pt.Snapshots.from_arrays(times, points, bounds=bounds, time_range=time_range)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return pt.TrajectorySynthesizer(1.0, 1e-5, seed=0, **settings).fit(snapshots)


@pytest.fixture(scope="module")
def people():
    """Of 3,000: time in years, height in metres, weight in kilograms."""
    rng = np.random.default_rng(0)
    n = 3000
    return 10 * rng.random(n), rng.normal(1.7, 0.1, n), rng.normal(70, 12, n)


# At the bounds --------------------------------------------------------------------------------


def test_a_unit_mistake_is_poor_and_named(people):
    times, height, weight = people
    wrong = grades(fitted(times, np.c_[height, weight], [(40, 210), (1, 140)], (0, 10)))
    bounds = wrong["People at the bounds"]
    assert bounds.grade == "poor"
    assert "lower bound of 'x1'" in bounds.value
    assert "the unit is another one" in bounds.sentence
    right = grades(fitted(times, np.c_[100 * height, weight], [(40, 210), (1, 140)], (0, 10)))
    assert right["People at the bounds"].grade == "good"
    assert right["Range of time"].grade == "good"


def test_a_coarse_model_shows_it_too(people):
    """With four cells a side, people at a bound fill a quarter of the box."""
    times, height, _ = people
    model = fitted(times, height, [(40, 210)], (0, 10), cells=4)
    assert grades(model)["People at the bounds"].grade == "poor"


# The range of time ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "time_range", "where"),
    [(365.25, (0, 10), "at the end of"), (1.0, (0, 1000), "at the start of")],
    ids=["days for years", "much too wide"],
)
def test_a_time_range_that_misses_the_data_is_named_as_the_cause(people, unit, time_range, where):
    times, height, _ = people
    found = grades(fitted(unit * times, height, [(1, 2.5)], time_range))
    assert found["Range of time"].grade == "poor"
    assert f"counted {where} the range" in found["Range of time"].sentence
    assert "More people or budget would not help" in found["Range of time"].sentence
    crowd = found["People per slab of time"]
    assert "First look at the range of time" in crowd.sentence
    assert "more people" not in crowd.sentence


def test_a_fit_that_buys_little_names_the_range_of_time(people):
    times, height, weight = people
    snapshots = pt.Snapshots.from_arrays(
        times * 365.25, np.c_[height, weight], bounds=[(1, 2.5), (1, 140)], time_range=(0, 10)
    )
    with pytest.warns(pt.LowBudgetWarning, match="one slab of time holds"):
        pt.TrajectorySynthesizer(0.3, 1e-5, seed=0, slabs=8).fit(snapshots)


# Gaps between cells ---------------------------------------------------------------------------


def test_smooth_people_have_no_gaps_and_people_in_the_middle_of_cells_do():
    rng = np.random.default_rng(3)
    smooth = np.clip(rng.normal(0.5, 0.12, (4000, 3, 1)), 0, 1)
    sides = np.full(3, 0.05)
    assert gap(smooth, sides) < 0.06  # a deviation is 0.008
    inner = (np.floor(smooth / 0.05) + 0.5 + 0.3 * (rng.random(smooth.shape) - 0.5)) * 0.05
    assert gap(inner, sides) == 1
    half = np.where(rng.random(smooth.shape) < 0.5, smooth, inner)
    assert gap(half, sides) == pytest.approx(0.5, abs=0.06)


def test_a_model_with_gaps_is_not_called_good(made_model):
    """Particles in the middle half of their cells of a tenth."""
    model = made_model(particles=400, cell_side=[0.1] * 5, people_middles=[0.0, 5, 10, 15, 20.0])
    cells = np.floor(model.particles / 0.1)
    inner = (cells + 0.5 + 0.5 * (model.particles / 0.1 - cells - 0.5)) * 0.1
    tight = np.full(5, 1e-3)
    assert grades(replace(model, bandwidth=tight))["Gaps between cells"].grade == "good"
    gaps = grades(replace(model, particles=inner, bandwidth=tight))["Gaps between cells"]
    assert gaps.grade == "look closer"  # between the times people cross the borders


# Small groups ---------------------------------------------------------------------------------


def test_noise_reaches_the_fewest_that_are_told_as_often_as_it_says():
    """P(discrete Laplace >= n) = e^(-epsilon n) / (1 + e^-epsilon), at most the bound used."""
    epsilon, cells = 0.8, 20_000
    fewest = fewest_told(epsilon, cells)
    assert cells * math.exp(-epsilon * fewest) / 2 == pytest.approx(0.05)
    rng = np.random.default_rng(4)
    p = 1 - math.exp(-epsilon)
    noise = rng.geometric(p, (200, cells)) - rng.geometric(p, (200, cells))
    # about 8 cells of 200 times 20,000 are expected; more than 30 have a chance below 1e-8
    assert (noise >= fewest).sum() < 30


@pytest.mark.parametrize(("extra", "share"), [(4, 0.02), (60, 0.0)])
def test_only_groups_that_noise_may_have_made_are_counted(extra, share):
    rng = np.random.default_rng(5)
    m = 200
    cloud = 0.3 + 0.05 * rng.random((1, m, 2))
    cloud[:, :extra] = 0.9
    found = small_groups(
        cloud, np.full((1, m), 1 / m), np.array([0.05]), np.array([1000.0]), fewest=25.0
    )
    assert found.share == pytest.approx(share)
    assert found.fewest == 25


def test_a_model_that_shows_false_groups_is_not_called_good(made_model):
    model = made_model(particles=200, cell_side=[0.1] * 5)
    model = replace(model, settings={**model.settings, "cells_per_side": 10})
    assert grades(model)["Small groups"].grade == "good"
    spoiled = model.particles.copy()
    spoiled[:, :4] = [0.05, 0.95]  # as many as 10 of 500 people
    small = grades(replace(model, particles=spoiled))["Small groups"]
    assert small.grade == "look closer"
    spoiled[:, :60] = [0.05, 0.95]  # as many as 150, which noise does not make
    assert grades(replace(model, particles=spoiled))["Small groups"].grade == "good"
