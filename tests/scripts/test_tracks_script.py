"""The experiment on few people at many times: its populations, tracks of a file, its quick run."""

import numpy as np
import pytest
from script_runs import imported, run

import privtraj as pt

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def tracks():
    with imported("experiments", "tracks", "common") as module:
        yield module


def test_a_population_is_the_same_whoever_is_drawn(tracks):
    (people, others, shared), (again, *_) = tracks.simulated(3, 0), tracks.simulated(3, 1)
    assert people.shape == again.shape
    assert 40 <= people.shape[0] <= 60
    assert 13 <= people.shape[1] <= 20
    assert not np.array_equal(people, again)
    np.testing.assert_allclose(people.mean(axis=0), others.mean(axis=0), atol=0.1)
    assert pt.metrics.path_lengths(shared).mean() < pt.metrics.path_lengths(others).mean()


def test_tracks_of_a_file_are_those_that_are_whole_where_most_are(tracks, tmp_path):
    lines = ["track,time,x,y,z"]
    for track, (first, last) in enumerate([(0, 30), (5, 25), (5, 21), (0, 10)]):
        lines += [f"{track},{time},{time},{track},{track * time}" for time in range(first, last)]
    file = tmp_path / "some.csv"
    file.write_text("\n".join(lines))
    whole, population = tracks.read(str(file))
    assert whole.shape == (3, tracks.FRAMES, 3)
    assert whole is population
    assert np.all((whole > 0) & (whole < 1))
    np.testing.assert_allclose(np.diff(whole[:, :, 0], 2), 0, atol=1e-12)


def test_the_quick_run_prints_every_population():
    printed = run("experiments/tracks.py", "--quick")
    for line in ("0 drift", "1 turning", "worth", "length"):
        assert line in printed
