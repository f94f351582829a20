"""The utility benchmark: its data, one point of its grid, and how it sums up."""

import numpy as np
import pytest
from script_runs import imported

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def utility():
    with imported("benchmarks", "utility", "populations") as module:
        yield module


def test_every_data_set_has_its_shape_and_fresh_people(utility):
    for name in utility.DATA:
        one, other = (utility.clouds(name, 40, 3, seed) for seed in (0, 1))
        assert one.shape == (3, 40, 2)
        assert ((one >= 0) & (one <= 1)).all()
        assert not np.array_equal(one, other)
    assert utility.clouds("double-well", 10, 5, 0, features=4).shape == (5, 10, 4)


def test_the_grid_has_every_point_once(utility):
    points = utility.cells(utility.DATA, utility.SWEEPS)
    assert len(points) == len(set(points))
    assert not any(cell.data == "growth" and cell.features > 2 for cell in points)


def test_a_point_is_scored_by_every_method(utility, monkeypatch):
    monkeypatch.setattr(utility, "GRIDS", {2: (4, 8)})
    monkeypatch.setattr(utility, "FRESH", 200)
    monkeypatch.setattr(utility, "RELEASED", 100)
    rows = utility.scores(utility.Cell("three modes", people=100, times=2), 0, full=False)
    assert {row["method"] for row in rows} >= {"ours", "counts", "gradients", "mixture", "uniform"}
    assert all(row["squared_w2"] > 0 for row in rows)
    table = utility.summary(rows)
    grids = [row["squared_w2"] for row in rows if row["method"].startswith("histogram ")]
    best = table[table.method == "histogram, best grid"].squared_w2.item()
    assert best == min(grids)
    assert "ours / histogram at its best grid" in utility.verdict(table)
    assert utility.markdown(table).count("\n") == 2
    utility.figure(table, {"epsilon": (1.0,)})
