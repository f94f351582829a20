"""Sizes chosen from public numbers: within limits everywhere, and in the right direction."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj.gradients import schedule
from privtraj.gradients.langevin import Stride

PEOPLE = (40, 130, 600, 3000, 20_000, 100_000)
BUDGETS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # mu or epsilon

sizes = st.floats(40, 1e5)
budgets = st.floats(0.5, 8)
dimensions = st.integers(1, 10)
areas = st.floats(1e-4, 1.0)  # share of the box that people occupy


def gradients(people, d, mu, **forced):
    return schedule.plan(people, d, measure="gradients", times=1, mu=mu, epsilon=mu, **forced)


def counts(people, d, epsilon, **forced):
    return schedule.plan(
        people, d, measure="counts", times=10, mu=epsilon, epsilon=epsilon, **forced
    )


@settings(max_examples=200)
@given(sizes, dimensions, budgets, st.sampled_from(["gradients", "counts"]), areas)
def test_every_plan_is_within_the_limits(people, d, budget, measure, area):
    plan = schedule.plan(
        people, d, measure=measure, times=10, mu=budget / 4, epsilon=budget, area=area
    )
    assert plan.measure == measure
    assert isinstance(plan.particles, int)
    assert isinstance(plan.steps, int)
    assert np.isfinite(plan.worth)
    assert plan.worth >= 0
    if plan.measure == "gradients":
        assert plan.cells_per_side == 0
        assert 2 <= plan.particles <= schedule.MAX_PARTICLES
        assert schedule.STEPS_RANGE[0] <= plan.steps <= schedule.STEPS_RANGE[1]
    else:
        assert plan.cells_per_side >= 2
        assert plan.cells_per_side**d <= max(schedule.MAX_CELLS, 2**d)
        assert plan.particles >= 2
        assert plan.steps == 0


@pytest.mark.parametrize("mu", [0.25, 1.0, 2.0])
@pytest.mark.parametrize("people", [130, 600, 3000])
def test_particles_shrink_with_dimension(people, mu):
    particles = [gradients(people, d, mu).particles for d in (1, 2, 4, 8)]
    assert particles == sorted(particles, reverse=True)
    assert particles[0] > particles[-1] or particles[0] == 2


@pytest.mark.parametrize("d", [1, 2, 3, 6, 10])
@pytest.mark.parametrize("mu", BUDGETS)
def test_fewer_people_never_get_more_particles_or_steps(d, mu, monkeypatch):
    monkeypatch.setattr(schedule, "MOST_WORK", np.inf)  # the limit on time has a test of its own
    plans = [gradients(people, d, mu) for people in PEOPLE]
    assert all(a.particles <= b.particles for a, b in pairwise(plans))
    assert all(a.steps <= b.steps for a, b in pairwise(plans))
    assert all(a.worth <= b.worth for a, b in pairwise(plans))


@pytest.mark.parametrize("d", [1, 2, 3, 6, 10])
@pytest.mark.parametrize("people", PEOPLE)
def test_more_budget_never_buys_less(d, people):
    by_gradients = [gradients(people, d, mu) for mu in BUDGETS]
    by_counts = [counts(people, d, epsilon) for epsilon in BUDGETS]
    assert all(a.particles <= b.particles for a, b in pairwise(by_gradients))
    assert all(a.cells_per_side <= b.cells_per_side for a, b in pairwise(by_counts))
    assert all(a.worth <= b.worth for a, b in pairwise(by_gradients))


def test_a_hundred_times_the_people_get_more_of_everything():
    assert gradients(1e4, 2, 1.0).particles > gradients(100, 2, 1.0).particles
    assert counts(1e5, 2, 1.0).cells_per_side > counts(100, 2, 1.0).cells_per_side


@settings(max_examples=50)
@given(sizes, dimensions, budgets, st.integers(2, 700), st.integers(2, 200))
def test_forced_particles_and_steps_are_honoured(people, d, budget, particles, steps):
    descent = gradients(people, d, budget, particles=particles, steps=steps)
    assert (descent.particles, descent.steps) == (particles, steps)
    counted = counts(people, d, budget, particles=particles, steps=steps)
    assert counted.particles == particles


@settings(max_examples=50)
@given(sizes, dimensions, budgets, areas, st.integers(2, 200))
def test_counts_take_no_steps_and_do_not_care_how_many_were_asked_for(
    people, d, budget, area, steps
):
    plan = counts(people, d, budget, area=area)
    assert plan.steps == 0
    assert counts(people, d, budget, area=area, steps=steps) == plan


@pytest.mark.parametrize(("d", "cells"), [(1, 1000), (2, 7), (3, 50), (10, 2)])
def test_forced_cells_are_honoured(d, cells):
    assert counts(600, d, 1.0, cells=cells).cells_per_side == cells


@settings(max_examples=200)
@given(sizes, dimensions, st.floats(0.01, 64), areas)
def test_cells_can_be_pooled_twice_unless_there_are_too_many_features(people, d, epsilon, area):
    side = schedule.cells_per_side(people, d, epsilon, area)
    assert isinstance(side, int)
    assert side == 2 or (side % 4 == 0 and side**d <= schedule.MAX_CELLS)
    assert side >= 4 or 4**d >= schedule.MAX_CELLS


@settings(max_examples=200)
@given(sizes, dimensions, st.floats(0.01, 64), areas, areas)
def test_people_who_occupy_less_of_the_box_never_get_fewer_cells(people, d, epsilon, one, other):
    small, large = (schedule.cells_per_side(people, d, epsilon, a) for a in sorted([one, other]))
    assert small >= large


@settings(max_examples=200)
@given(st.tuples(sizes, sizes), dimensions, st.floats(0.01, 64), areas)
def test_more_people_never_get_fewer_cells(people, d, epsilon, area):
    few, many = (schedule.cells_per_side(n, d, epsilon, area) for n in sorted(people))
    assert few <= many


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_area_matters_and_is_the_whole_box_unless_told(d):
    told = [counts(3000, d, 1.0, area=area).cells_per_side for area in (1.0, 1e-3)]
    assert told[0] == counts(3000, d, 1.0).cells_per_side < told[1]


def test_the_area_is_nothing_to_gradients():
    assert gradients(600, 3, 1.0, area=0.01) == gradients(600, 3, 1.0)


def test_low_dimensions_count_and_high_dimensions_descend():
    chosen = [schedule.choose_measure(d) for d in range(1, 11)]
    assert (chosen[0], chosen[-1]) == ("counts", "gradients")
    assert chosen == sorted(chosen)  # one switch, from counts to gradients


@settings(max_examples=60)
@given(st.integers(2, 100), st.floats(0, 10))
def test_a_schedule_has_one_sound_number_per_step(steps, pull):
    made = schedule.gradient_schedule(steps, pull)
    assert made.steps == steps
    for name, values in dataclasses.asdict(made).items():
        assert values.shape == (steps,), name
        assert np.isfinite(values).all(), name
        assert (values >= 0).all(), name
    assert (made.noise_limit > 0).all()
    assert (made.step_size > 0).all()
    assert (made.step_size <= 1).all()
    assert (made.pull <= pull).all()
    assert (made.shrink <= made.grow).all()
    assert (made.shrink > 0).all()
    assert (made.mass_rate <= 1).all()


def test_a_schedule_settles_with_smaller_steps():
    made = schedule.gradient_schedule(40, 0.1)
    assert made.step_size[-1] < made.step_size[0]
    assert (np.diff(made.step_size) <= 1e-12).all()


def test_a_stride_takes_exactly_the_fields_of_a_schedule():
    fields = {f.name for f in dataclasses.fields(schedule.Schedule)}
    assert set(Stride._fields) == fields


def test_many_people_at_many_times_do_not_make_a_fit_take_hours():
    chosen = schedule.plan(1e5, 6, measure="gradients", times=100, mu=2.0, epsilon=8.0)
    assert 16 <= chosen.particles < gradients(1e5, 6, 2.0).particles


@pytest.mark.parametrize("d", [1, 2, 3])
def test_however_concentrated_people_are_few_of_them_do_not_get_the_finest_cells(d):
    few, many = (schedule.cells_per_side(n, d, 1.0, 1e-6) for n in (300, 1e6))
    assert few < many
