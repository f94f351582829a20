"""The reproductions on handwritten digits, run in full on simulated strokes."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from reproduce import digits, fig_plain, fig_subsample, fig_warmstart, table_w2
from reproduce.result import Options

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def strokes(tmp_path_factory):
    """A file of simulated strokes of digit 7."""
    rng = np.random.default_rng(0)
    paths = np.cumsum(rng.uniform(0, 0.1, size=(400, 10, 2)), axis=1).astype(np.float32)
    file = tmp_path_factory.mktemp("strokes") / "strokes.npz"
    np.savez(file, d7_T10=1 - paths)
    return file


@pytest.fixture(scope="module")
def written(strokes, tmp_path_factory, monkeypatch_module):
    """All four, with what a full run says, in this process."""
    out = tmp_path_factory.mktemp("out")
    for module in (table_w2, fig_warmstart, fig_plain, fig_subsample):
        module.run(Options(strokes=Path(strokes), quick=True)).write(out)
    return out


@pytest.fixture(scope="module")
def monkeypatch_module():
    """One process: no time for starting others."""
    with pytest.MonkeyPatch.context() as patch:
        for module in ("table_w2", "fig_warmstart", "fig_plain", "fig_subsample"):
            patch.setattr(
                f"reproduce.{module}.in_parallel",
                lambda function, tasks, progress=None: [function(*task) for task in tasks],
            )
        yield patch


def numbers(out, name):
    whole = json.loads((out / f"{name}.json").read_text())
    assert len(pd.read_csv(out / f"{name}.csv")) == len(whole["rows"])
    return whole


def test_table_1_scores_every_method_and_says_what_it_found(written):
    whole = numbers(written, "table-w2")
    methods = {row["method"] for row in whole["rows"] if row["digit"] == 7}
    assert methods >= {"paper", "means", "recipe", "ours, add-remove", "ours, replace-one"}
    recipe = next(r for r in whole["rows"] if (r["digit"], r["method"]) == (7, "recipe"))
    ours = [r["exact_epsilon"] for r in whole["rows"] if r["method"].startswith("ours")]
    assert all(1.9 < epsilon <= 2.0 for epsilon in ours)
    assert recipe["exact_epsilon"] > 0
    text = (written / "table-w2.md").read_text()
    assert "| paper's Table 1 | .024 |" in text
    assert "at least 5 times better" in text


def test_an_advantage_is_of_means():
    rows = [
        {"digit": 7, "method": "ours, add-remove", "squared_w2": value} for value in (0.001, 0.003)
    ]
    assert table_w2.advantage(rows, 7, "ours, add-remove") == pytest.approx(12.0)


@pytest.mark.parametrize("name", ["fig-warmstart", "fig-plain", "fig-subsample"])
def test_figures_come_as_png_and_svg_with_numbers_and_words(written, name):
    for suffix in (".png", ".svg", ".csv", ".json", ".md"):
        assert (written / f"{name}{suffix}").stat().st_size > 100
    text = (written / f"{name}.md").read_text()
    assert "**Agrees.**" in text
    assert "**Does not.**" in text


def test_the_cost_of_dropped_times_is_measured_where_they_were_dropped(written):
    rows = [r for r in numbers(written, "fig-subsample")["rows"] if r["what"] == "ours"]
    assert [r["times_kept"] for r in rows] == [5, 10]
    assert rows[0]["squared_w2_dropped"] > 0
    assert rows[1]["squared_w2_dropped"] is None


@pytest.mark.parametrize("power", [0.5, 0.75])
def test_the_largest_gap_is_of_the_order_the_proposition_states(power):
    """At T = 3000; the mean over 200 draws has a standard error of about 2 %."""
    row = fig_subsample.gap(3000, power)
    assert 0.7 < row["ratio"] < 1.6


def test_the_noise_of_private_means_is_the_propositions():
    assert digits.means_noise(1.0, 5e-4) == pytest.approx(np.sqrt(8 * np.log(2000)))
