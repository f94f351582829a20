"""Pen strokes are read from an archive and from text files; mistakes are one sentence."""

import numpy as np
import pytest

from privtraj.base.errors import InputError
from reproduce.registry import reproduce
from reproduce.result import Options
from reproduce.strokes import strokes


@pytest.fixture
def archive(tmp_path):
    values = np.random.default_rng(0).random((5, 10, 2)).astype(np.float32)
    np.savez(tmp_path / "s.npz", d3_T10=values, d6_T15=np.zeros((2, 15, 2)), d3_nstrokes=[1])
    return tmp_path / "s.npz", values


def test_strokes_from_npz(archive):
    path, values = archive
    np.testing.assert_array_equal(strokes(path, 3), values)
    assert strokes(str(path), 6, 15).dtype == np.float32


@pytest.mark.parametrize(("digit", "times"), [(4, 10), (3, 15)])
def test_strokes_that_the_archive_lacks(archive, digit, times):
    with pytest.raises(InputError, match=f"digit {digit} at {times} times: it has d3_T10, d6_T15"):
        strokes(archive[0], digit, times)


@pytest.fixture
def sequences(tmp_path):
    lines = {0: "18,4\n17,5\n16,5\n-1,-1\n10,20\n1,28\n-2,-2", 1: "5,5\n-2,-2", 2: "9,9\n-2,-2"}
    for k, points in lines.items():
        (tmp_path / f"trainimg-{k}-points.txt").write_text(f"x,y\n{points}\n")
        onehot = ["0"] * 14
        onehot[[6, 1, 6][k]] = "1"
        (tmp_path / f"trainimg-{k}-targetdata.txt").write_text(" ".join(onehot) + "\n")
    (tmp_path / "trainlabels.txt").write_text("6\n1\n6\n")
    return tmp_path


@pytest.mark.parametrize("labels", ["listed", "in the targets"])
def test_strokes_from_a_directory(sequences, labels):
    if labels == "in the targets":
        (sequences / "trainlabels.txt").unlink()
    found = strokes(sequences, 6, times=3)
    assert found.shape == (2, 3, 2)
    assert found.dtype == np.float32
    # Pixel (column 17, row 3) counted from 0 is written 18,4.
    expected = [[17.5, 3.5], [15.5, 4.5], [0.5, 27.5]]
    np.testing.assert_allclose(found[0] * 28, np.array(expected) * [1, -1] + [0, 28], rtol=1e-5)
    assert (found[1] == found[1][0]).all()
    assert ((found >= 0) & (found <= 1)).all()


def test_stroke_directory_mistakes(sequences, tmp_path):
    with pytest.raises(InputError, match="no strokes of digit 4: it has digits 1, 6"):
        strokes(sequences, 4)
    with pytest.raises(InputError, match=r"no files testimg-\*-points"):
        strokes(sequences, 6, split="test")
    with pytest.raises(InputError, match="at least one point"):
        strokes(sequences, 6, times=0)
    (sequences / "trainimg-0-points.txt").write_text("x,y\n-2,-2\n")
    with pytest.raises(InputError, match="has no pen points"):
        strokes(sequences, 6)
    (sequences / "trainlabels.txt").write_text("6\n")
    with pytest.raises(InputError, match="does not say which digits"):
        strokes(sequences, 6)
    with pytest.raises(InputError, match="no file or directory"):
        strokes(tmp_path / "none", 6)
    (tmp_path / "bad.npz").write_text("no archive")
    with pytest.raises(InputError, match=r"cannot be read as an \.npz"):
        strokes(tmp_path / "bad.npz", 6)


def test_two_ways_to_draw_an_eight_are_told_apart(tmp_path):
    """Forty writers go round one way and twenty the other; a file without eights is no failure."""
    turn = np.linspace(0, 2 * np.pi, 15)
    one = np.stack([0.5 + 0.2 * np.sin(2 * turn), 0.5 + 0.4 * np.cos(turn)], axis=1)
    rng = np.random.default_rng(0)
    paths = np.concatenate([np.tile(one, (40, 1, 1)), np.tile(one[::-1] * [1, 0.8], (20, 1, 1))])
    np.savez(tmp_path / "eights.npz", d8_T15=paths + rng.normal(0, 0.01, paths.shape))
    np.savez(tmp_path / "others.npz", d3_T15=paths)
    found = reproduce("fig-eights", Options(tmp_path / "eights.npz"))
    assert [row["writers"] for row in found.rows] == [40, 20]
    assert list(found.figures) == ["fig-eights"]
    lacking = reproduce("fig-eights", Options(tmp_path / "others.npz"))
    assert "has no strokes of digit 8" in lacking.text
