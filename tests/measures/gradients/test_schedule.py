"""The numbers that change from step to step: sound at every step, and settling at the end."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj.measures.gradients.langevin import stride
from privtraj.measures.gradients.schedule import gradient_schedule


@settings(max_examples=60)
@given(st.integers(2, 100), st.floats(0, 10))
def test_a_schedule_has_one_sound_number_per_step(steps, time_coupling):
    made = gradient_schedule(steps, time_coupling)
    for name, values in made._asdict().items():
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


def test_a_stride_is_one_step_of_a_schedule():
    made = gradient_schedule(5, 0.1)
    one = stride(made, 3)
    assert one._fields == made._fields
    np.testing.assert_array_equal(one, np.float32([row[3] for row in made]))


def test_a_schedule_settles_with_smaller_steps():
    made = gradient_schedule(40, 0.1)
    assert made.step_size[-1] < made.step_size[0]
    assert (np.diff(made.step_size) <= 1e-12).all()
