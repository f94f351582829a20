"""Curves of people who have levels: fixed ones stay, changing ones keep their shares and jump."""

import numpy as np
import pytest

from privtraj.base.space import hat_functions
from privtraj.columns.axes import Axes
from privtraj.measures.marginals import Marginals
from privtraj.measures.windows.fit import Resolution, first_levels, through_slabs
from privtraj.measures.windows.levels import edge_shares
from privtraj.measures.windows.motion import slab_means
from privtraj.measures.windows.timeline import Timeline
from privtraj.motion.inertia import Inertia

K, M = 5, 300
AXES = Axes((0, 2, 3, 0), (False,) * 4, (False, True, False, True))
"""A number, a fixed category, a changing one, a fixed number."""


def marginals(seed=0, m=M, axes=AXES):
    """Level 1 of the changing category is far from level 0, and grows from 0.1 to 0.7 of all."""
    rng = np.random.default_rng(seed)
    clouds = []
    for k in range(K):
        group = (np.arange(m) >= 0.7 * m).astype(int)
        ill = rng.random(m) < 0.1 + 0.6 * (k + 0.5) / K
        number = np.where(ill, 0.8, 0.2) + 0.03 * rng.standard_normal(m)
        still = np.where(group, 0.7, 0.3) + 0.05 * rng.standard_normal(m)
        clouds.append(np.column_stack([number, (group + 0.5) / 2, (ill + 0.5) / 3, still]))
    particles = np.clip(np.stack(clouds), 0, 1)
    even = np.full((K, m), 1 / m)
    return Marginals(particles, even, np.full(K, 0.01), np.full(K, 0.02), {})


@pytest.fixture(scope="module")
def through():
    moments = np.linspace(0.0, 10.0, 101)
    measured = Resolution(Timeline(moments, False), np.minimum(np.arange(101) * K // 100, K - 1))
    times = np.arange(11.0)
    rng = np.random.default_rng(0)
    return through_slabs(marginals(), measured, times, rng, Inertia(), 400, AXES)


def test_fixed_columns_never_change_along_a_curve(through):
    made, knots = through
    assert made.particles.shape == (len(knots), 400, 4)
    assert (np.ptp(made.particles[:, :, 1], axis=0) == 0).all()
    assert np.ptp(made.particles[:, :, 3], axis=0).max() < 1e-9


def test_groups_of_fixed_levels_have_their_share_and_their_own_numbers(through):
    made, _ = through
    group = AXES.level_of(made.particles)[0, :, 1]
    assert group.mean() == pytest.approx(0.3, abs=0.01)
    still = made.particles[0, :, 3]
    assert still[group == 0].mean() == pytest.approx(0.3, abs=0.02)
    assert still[group == 1].mean() == pytest.approx(0.7, abs=0.02)


def test_shares_of_changing_levels_follow_and_few_people_change(through):
    """0.6 of all have to change; shares are those of 300 people in a slab, so 0.1 is 3.5 errors."""
    made, knots = through
    level = AXES.level_of(made.particles)[:, :, 2]
    np.testing.assert_allclose((level == 1).mean(axis=1), 0.1 + 0.06 * knots, atol=0.1)
    assert not (level == 2).any()
    changes = (np.diff(level, axis=0) != 0).sum(axis=0).mean()
    assert 0.4 < changes < 0.85


def test_nobody_lingers_between_the_numbers_of_two_levels(through):
    made, _ = through
    number, level = made.particles[:, :, 0], AXES.level_of(made.particles)[:, :, 2]
    assert ((number > 0.35) & (number < 0.65)).mean() < 0.05
    assert ((number > 0.5) != (level == 1)).mean() < 0.05


def test_levels_alone_have_curves_too():
    axes = Axes((3,), (False,), (False,))
    parts = marginals()
    parts = parts._replace(particles=parts.particles[:, :, 2:3])
    moments = np.linspace(0.0, 10.0, 101)
    measured = Resolution(Timeline(moments, False), np.minimum(np.arange(101) * K // 100, K - 1))
    rng = np.random.default_rng(1)
    made, knots = through_slabs(parts, measured, np.arange(11.0), rng, Inertia(), 200, axes)
    level = axes.level_of(made.particles)[:, :, 0]
    np.testing.assert_allclose((level == 1).mean(axis=1), 0.1 + 0.06 * knots, atol=0.1)
    assert (np.diff(level, axis=0) != 0).sum(axis=0).mean() < 0.8


def test_shares_at_edges_undo_the_blur_of_slabs():
    moments = np.linspace(0, 1, 100)
    slabs = np.arange(100) * 4 // 100
    edges = np.linspace(0, 1, 5)
    in_slab = slab_means(slabs) @ hat_functions(moments, edges)
    line = np.stack([0.2 + 0.5 * edges, 0.8 - 0.5 * edges], axis=1)
    np.testing.assert_allclose(edge_shares(in_slab @ line, in_slab), line, atol=0.01)
    gone = edge_shares(np.array([[1.0, 0.0]] * 3 + [[0.0, 1.0]]), in_slab)
    np.testing.assert_allclose(gone.sum(axis=1), 1)
    assert (gone >= 0).all()
    assert (gone[:3, 1] == 0).all()  # what no slab beside an edge has, nobody has there


def test_a_look_without_numbers_counts_as_many_levels_as_it_may():
    def sides(*levels):
        return first_levels(Axes(levels, (False,) * len(levels), (False,) * len(levels)))

    assert sides(3, 4) == (3, 4)
    assert sides(3, 20, 5) == (3, 1, 5)
    assert sides(200, 200) == (32, 1)
