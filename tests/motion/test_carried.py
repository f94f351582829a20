"""Curves that another sampler draws people from: what they hold, and how many."""

from dataclasses import replace

import numpy as np
import pytest

import privtraj as pt
from mixed_clinic import mixed_model
from privtraj.model.sampler import FEWEST_PARTICLES
from privtraj.motion.curves import fine_stops


@pytest.fixture(scope="module")
def model():
    return mixed_model(people=30).with_reference("auto")


def test_the_stops_of_a_drawn_process_are_its_knots_and_times_between():
    knots = np.array([0.0, 0.1, 1.0])
    stops = fine_stops(knots, 9)
    assert len(stops) == 9
    assert set(knots) <= set(stops)
    assert (np.diff(stops) > 0).all()
    assert (fine_stops(np.linspace(0, 1, 40), 9) == np.linspace(0, 1, 40)).all()


def test_curves_of_inertia_are_all_of_the_models_own(model):
    carried = model.carried(10**6, 1000, 65)
    assert carried.whole
    assert carried.spline
    assert carried.diffusivity == 0
    assert carried.places.shape == (30, 5, 9)
    assert (carried.width == model.bandwidth).all()
    ours = np.sort(carried.places[:, :, 1], axis=0)
    assert ours == pytest.approx(np.sort(model.particles[:, :, 1].T, axis=0), abs=1e-6)


def test_what_is_missing_is_filled_in_and_its_flag_says_so(model):
    carried = model.carried(10**6, 1000, 65)
    assert (carried.places[:, :, 8] > 0.5).any()
    theirs = np.where(model.particles[:, :, 8] > 0.5, np.nan, model.particles[:, :, 0])
    low, high = np.nanmin(theirs), np.nanmax(theirs)
    always = (carried.places[:, :, 8] > 0.5).all(axis=1)
    mine = carried.places[~always, :, 0]
    assert low - 1e-6 <= mine.min()
    assert mine.max() <= high + 1e-6


def test_there_is_room_for_so_many_numbers_only(model):
    few = model.carried(20 * 5 * 9, 1000, 65)
    assert len(few.places) == 20
    assert not few.whole
    assert len(model.carried(1, 1000, 65).places) == FEWEST_PARTICLES
    assert len(model.carried(10**6, 7, 65).places) == 7


@pytest.mark.parametrize(
    ("reference", "spline", "chance", "stops"),
    [
        (pt.reference.Brownian(0.02), False, 0.02, 5),
        (pt.reference.OrnsteinUhlenbeck([10.0, 80.0, 3.0], 1.0, 0.02), False, 0.02, 65),
        (pt.reference.Inertia(memory=0.5), True, 0.0, 65),
        (pt.reference.Learned(), False, 0.0, 65),
    ],
)
def test_other_processes_are_drawn(model, reference, spline, chance, stops):
    carried = model.with_reference(reference).carried(10**5, 50, 65)
    assert not carried.whole
    assert carried.spline is spline
    assert carried.diffusivity == pytest.approx(chance, rel=1e-4)
    assert carried.places.shape == (50, stops, 9)
    assert ((carried.places >= 0) & (carried.places <= 1)).all()


def test_lives_belong_to_curves_only_where_places_decide(model):
    assert model.carried(10**5, 50, 65).lives is None
    alike = model.with_growth(0.5).carried(10**5, 50, 65)
    assert alike.lives.shape == (50, 2)
    assert not alike.own_lives
    moved = replace(model, growth=pt.Growth(0.5, by_place="learned")).carried(10**5, 50, 65)
    assert moved.own_lives
    assert len(moved.places) == len(moved.lives) == 50
