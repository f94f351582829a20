"""What comes back is counted: exactly while there is room, as an estimate beyond."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from privtraj.assess.checking.repeats import Repeats, row_hashes, text_hashes


def hashed(numbers):
    return row_hashes(len(numbers), [np.asarray(numbers, np.float64)])


@given(st.lists(st.lists(st.integers(0, 20), max_size=30), max_size=6))
def test_what_fits_is_counted_exactly(blocks):
    repeats = Repeats(most=25)
    for block in blocks:
        repeats.add(hashed(block))
    every = [number for block in blocks for number in block]
    expected = np.unique(every, return_counts=True)[1] if every else []
    assert sorted(repeats.counts) == sorted(expected)
    assert repeats.scale == 1


def test_what_does_not_fit_is_estimated_in_bounded_memory():
    """100,000 things, every tenth of them three times: 1,000 to 2,000 of them are counted, so a
    number has a relative deviation of 3 % at most, and the limits are seven of them wide."""
    repeats = Repeats(most=2000)
    for start in range(0, 100_000, 1000):
        repeats.add(hashed(np.arange(start, start + 1000)))
        repeats.add(hashed(np.repeat(np.arange(start, start + 1000, 10), 2)))
        assert len(repeats.counts) <= 2000
    assert repeats.scale > 1
    assert set(repeats.counts) == {1, 3}
    assert 80_000 < len(repeats.counts) * repeats.scale < 120_000
    several = int((repeats.counts == 3).sum()) * repeats.scale
    assert 3_000 < several < 17_000


def test_rows_are_equal_where_their_values_are():
    one = np.array([0.0, -0.0, np.nan, -np.nan, 1.0, 2.0])
    two = np.array([1.0, 1.0, 1.0, 1.0, 2.0, 1.0])
    found = row_hashes(6, [one, two])
    assert found[0] == found[1]
    assert found[2] == found[3]
    assert len(set(found.tolist())) == 4


def test_names_that_read_differently_are_different_people():
    assert len(set(text_hashes(["a", "b", -1, -2, "07", "7"]).tolist())) == 6
    assert text_hashes(["a"]) == text_hashes(["a"])
