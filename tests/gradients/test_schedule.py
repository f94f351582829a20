"""The numbers that change from step to step: sound at every step, and settling at the end."""

import dataclasses

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj.gradients.langevin import Stride
from privtraj.gradients.schedule import Schedule, gradient_schedule


@settings(max_examples=60)
@given(st.integers(2, 100), st.floats(0, 10))
def test_a_schedule_has_one_sound_number_per_step(steps, time_coupling):
    made = gradient_schedule(steps, time_coupling)
    assert made.steps == steps
    for name, values in dataclasses.asdict(made).items():
        assert values.shape == (steps,), name
        assert np.isfinite(values).all(), name
        assert (values >= 0).all(), name
    assert (made.noise_limit > 0).all()
    assert (made.step_size > 0).all()
    assert (made.step_size <= 1).all()
    assert (made.time_coupling <= time_coupling).all()
    assert (made.shrink <= made.grow).all()
    assert (made.shrink > 0).all()
    assert (made.mass_rate <= 1).all()


def test_a_schedule_settles_with_smaller_steps():
    made = gradient_schedule(40, 0.1)
    assert made.step_size[-1] < made.step_size[0]
    assert (np.diff(made.step_size) <= 1e-12).all()


def test_a_stride_takes_exactly_the_fields_of_a_schedule():
    assert set(Stride._fields) == {field.name for field in dataclasses.fields(Schedule)}
