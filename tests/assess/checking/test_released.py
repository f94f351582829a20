"""What a released model says of its ranges; nothing of a model of people who are spread."""

from dataclasses import replace

import numpy as np
import pytest

from mixed_models import build
from privtraj.assess.checking.released import doubts


@pytest.fixture(scope="module")
def model():
    made = build()
    return replace(made, settings={"cells_per_side": 32})


def number_of(model):
    return int(np.flatnonzero(model.axes.numbers)[0])


def at(model, place):
    particles = model.particles.copy()
    particles[..., number_of(model)] = place
    return replace(model, particles=particles)


def test_people_who_are_spread_are_no_doubt(model):
    assert doubts(model) == ()
    assert doubts(at(model, 0.5)) == ()


@pytest.mark.parametrize(("place", "end"), [(0.0, "lower"), (0.99, "upper")])
def test_everybody_at_a_bound(model, place, end):
    (doubt,) = doubts(at(model, place))
    name = model.columns[number_of(model)].name
    assert doubt.startswith(f"100 % of the released people are at the {end} bound of '{name}'")


def test_where_cells_are_coarse_nothing_is_said(model):
    assert doubts(replace(at(model, 0.0), settings={"cells_per_side": 6})) == ()


def counted(model, people, noise=1.0):
    told = {"people_per_time": people, "people_noise": noise}
    return replace(model, diagnostics={**model.diagnostics, **told})


def test_everybody_in_one_slab(model):
    (doubt,) = doubts(counted(model, [10.0, 970.0, 10.0]))
    assert doubt.startswith("98 % of the released people are in one of 3 slabs of time")
    assert doubts(counted(model, [300.0, 400.0, 300.0])) == ()
    assert doubts(counted(model, [10.0, 970.0, 10.0], noise=200.0)) == (), "it may be noise"
