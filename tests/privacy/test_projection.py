"""Rows seen along other axes: each by itself, inside a cube, counted and paid for as any rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privtraj.audit.canaries import People
from privtraj.audit.transcript import added_by
from privtraj.base.space import Slabs
from privtraj.privacy.guard import (
    CellCounts,
    Gaussian,
    Guard,
    Laplace,
    MemoryRows,
    ProjectedRows,
    Projection,
    Release,
    cell_of,
)
from privtraj.privacy.ledger import Ledger
from privtraj.privacy.sums import ClippedSums


def along(d, rank, seed=0, half=0.4):
    rng = np.random.default_rng(seed)
    return Projection(rng.random(d), np.linalg.qr(rng.standard_normal((d, rank)))[0], half)


def points_of(n, d, seed=1):
    return np.random.default_rng(seed).random((n, d)).astype(np.float32)


@given(st.integers(2, 60), st.integers(1, 6), st.integers(1, 70), st.integers(0, 99))
def test_a_point_does_not_depend_on_the_other_rows_bit_by_bit(d, rank, n, seed):
    project, points = along(d, min(rank, d), seed), points_of(n, d, seed)
    alone = np.concatenate([project(points[k : k + 1]) for k in range(n)])
    np.testing.assert_array_equal(project(points), alone)
    np.testing.assert_array_equal(project(points[::-1]), alone[::-1])


@given(st.integers(2, 60), st.floats(1e-3, 10))
def test_points_stay_in_the_unit_cube(d, half):
    corners = np.concatenate([points_of(20, d), np.zeros((1, d)), np.ones((1, d))])
    seen = along(d, 2, half=half)(corners.astype(np.float32))
    assert seen.dtype == np.float32
    assert seen.min() >= 0
    assert seen.max() <= 1


def test_what_is_inside_comes_back_as_its_place_in_the_subspace():
    project = along(9, 3, half=5.0)
    points = points_of(50, 9)
    off = points - project.back(project(points).astype(np.float64))
    np.testing.assert_allclose(off @ project.axes, 0.0, atol=1e-5)


def test_projected_rows_are_counted_and_sorted_by_their_new_points():
    project, times = along(5, 2), np.repeat([0.0, 1.0, 2.0], 40)
    rows = MemoryRows(points_of(120, 5), times)
    seen, slabs = ProjectedRows(rows, project), Slabs(np.array([0.5, 1.5]), np.array([1, -1, 0]))
    found = seen.in_slabs(slabs)
    np.testing.assert_array_equal(found.points, project(rows.in_slabs(slabs).points))
    counts = seen.cell_counts(slabs, (4, 3))
    for slab in range(2):
        cells = cell_of(found.points[found.slabs == slab], (4, 3))
        np.testing.assert_array_equal(counts[slab], np.bincount(cells, minlength=12))
    assert seen.digest == rows.digest


def test_a_record_more_moves_one_count_of_a_projected_guard_by_one(snapshots_of, silent):
    project = along(4, 2)
    clouds = [points_of(30, 4, seed).astype(np.float64) for seed in (2, 3)]
    counts = []
    for more in (0, 1):
        some = [np.concatenate([clouds[0], np.full((more, 4), 0.9)]), clouds[1]]
        guard = snapshots_of(some, 4).guarded(Guard, Ledger(60.0, 1e-3), silent())
        part = guard.projected(project)
        assert part.n_features == 2
        assert not part.shape.axes.mixed
        assert part.shape.person == guard.shape.person
        counts.append(part.ask(Release(CellCounts(5), Laplace(1.0), "cells")))
    moved = counts[1] - counts[0]
    assert moved.sum() == np.abs(moved).sum() == 1


class Watcher:
    def released(self, release, shape, answer):
        self.seen = release.question, shape, answer


@pytest.mark.parametrize("asked", ["counts", "sums"])
def test_a_watcher_knows_what_a_record_adds_to_a_projected_answer(asked, snapshots_of, silent):
    project, watcher = along(4, 2, half=2.0), Watcher()
    clouds = [points_of(30, 4, seed).astype(np.float64) for seed in (2, 3)]
    snapshots = snapshots_of(clouds, 4)
    guard = snapshots.guarded(Guard, Ledger(60.0, 1e-3), silent(), watcher=watcher)
    part = guard.projected(project)
    if asked == "counts":
        part.ask(Release(CellCounts(4), Laplace(1.0), "cells"))
    else:
        part.ask(
            Release(
                ClippedSums(_places, np.zeros((2, 1), np.float32), np.full(2, 9.0)),
                Gaussian(0.5),
                "places",
            )
        )
    question, shape, answer = watcher.seen
    points = np.concatenate(clouds).astype(np.float32)
    people = People(np.repeat(snapshots.times, 30), points, np.ones(60, np.int64))
    np.testing.assert_allclose(added_by(people, question, shape)[0], answer, atol=1e-3)


def _places(points, parameters):
    return points + parameters


def test_a_cell_is_numbered_by_its_places_the_first_feature_slowest():
    points = np.array([[0.0, 0.0, 0.9], [0.49, 0.99, 0.1], [0.5, 0.34, 0.0], [1.0, 1.0, 1.0]])
    assert cell_of(np.float32(points), (2, 3, 1)).tolist() == [0, 2, 4, 5]
