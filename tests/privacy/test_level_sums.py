"""Clipped sums over people who have levels: sensitivity, exactness, and what an audit is told."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj.audit.transcript import clip_norm
from privtraj.base.space import Slabs
from privtraj.columns.axes import LEVEL_SCALE, Axes, Embedding
from privtraj.measures.likelihood import Mixture, mass_weight
from privtraj.measures.likelihood import weights_and_residual as weigh
from privtraj.privacy import noise
from privtraj.privacy.events import Person
from privtraj.privacy.guard import Guard
from privtraj.privacy.ledger import Ledger
from privtraj.privacy.questions import Gaussian, Release
from privtraj.privacy.rows import MemoryRows, PublicShape
from privtraj.privacy.sums import KernelSum, KernelSums, kernel_lattice

T, M = 2, 3
AXES = Axes((0, 4, 2), (False,) * 3, (False,) * 3)
EMBEDDING = Embedding(AXES)


def kernel(bandwidth=0.1, seed=0):
    rng = np.random.default_rng(seed)
    places = rng.uniform(size=(T, M, EMBEDDING.width)).astype(np.float32)
    places[:, :, 1:] *= LEVEL_SCALE
    zeros = np.zeros((T, M), np.float32)
    mixture = Mixture(places, zeros, np.full(T, bandwidth, np.float32))
    return KernelSum(mixture.particles, mass_weight(mixture), mixture)


class _Watcher:
    def released(self, release, shape, answer):
        self.question, self.shape, self.answer = release.question, shape, answer


def guard_over(rows, source, watcher=None):
    shape = PublicShape(Slabs.around(np.arange(float(T))), AXES, Person())
    return Guard(rows, shape, Ledger(60.0, 1e-3), source, watcher=watcher)


def rows_of(records):
    points = np.array([point for _, point in records], np.float32).reshape(-1, 3)
    return MemoryRows(points, np.array([float(t) for t, _ in records]))


level = st.sampled_from(range(4)).map(lambda c: (c + 0.5) / 4)
record = st.tuples(
    st.integers(0, T - 1),
    st.tuples(st.floats(0, 1, width=32), level, st.sampled_from([0.25, 0.75])),
)


@settings(max_examples=30)
@given(
    st.lists(record, min_size=1, max_size=5), record, record, st.floats(0.01, 1), st.floats(-3, 1)
)
def test_a_record_moves_the_sum_by_the_clip_at_most(silent, others, one, instead, width, log_clip):
    """In released integers: S / z for a record more, twice that for another."""
    parts, clip, z = kernel(width), np.full(T, 10.0**log_clip), 2.0

    def integers(records):
        sums = guard_over(rows_of(records), silent()).ask(
            Release(KernelSums(weigh, parts, clip), Gaussian(z), "step")
        )
        lattice = kernel_lattice(clip, noise.GAUSSIAN_STD / z, np.asarray(parts.centres))
        return np.rint(sums / lattice.unit[:, None])

    without, present = integers(others), integers([*others, one])
    bound = noise.GAUSSIAN_STD / z
    assert np.linalg.norm(present - without) <= bound
    assert np.linalg.norm(present - integers([*others, instead])) <= 2 * bound


def test_sums_are_those_of_the_clipped_vectors_that_an_audit_computes(silent):
    rng, watcher = np.random.default_rng(0), _Watcher()
    points = AXES.centred(rng.random((40, 3))).astype(np.float32)
    times = rng.integers(0, T, 40).astype(float)
    guard = guard_over(MemoryRows(points, times), silent(), watcher)
    parts, clip = kernel(), np.array([0.05, 0.4])
    sums = guard.ask(Release(KernelSums(weigh, parts, clip), Gaussian(1.0), "step"))
    wanted = np.zeros_like(sums)
    for point, t in zip(points, times.astype(int), strict=True):
        wanted[t] += clip_norm(watcher.question.vector(watcher.shape, t, point), clip[t])
    np.testing.assert_allclose(sums, wanted, atol=2e-3)
    assert sums.shape == (T, M * (1 + 4 + 2) + M + 1)


def test_the_block_of_a_vector_is_the_weighted_difference_of_shares(silent):
    """One person of level 2: w (q - 1[c = 2]) s in the block of the first category."""
    parts = kernel(0.3)
    point = np.array([0.4, (2 + 0.5) / 4, 0.25], np.float32)
    rows = MemoryRows(point[None], np.zeros(1))
    sums = guard_over(rows, silent()).ask(
        Release(KernelSums(weigh, parts, np.full(T, 50.0)), Gaussian(1.0), "step")
    )[0]
    moved = sums[: M * 7].reshape(M, 7)
    w = sums[M * 7 : M * 8] / float(parts.mass[0])
    one_hot = LEVEL_SCALE * (np.arange(4) == 2)
    np.testing.assert_allclose(
        moved[:, 1:5], w[:, None] * (np.asarray(parts.centres)[0, :, 1:5] - one_hot), atol=1e-3
    )
    assert w.sum() == pytest.approx(1, abs=1e-3)
