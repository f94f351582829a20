"""Answers of a released model: what is understood, what is said, and how often it is true."""

import json
import math

import numpy as np
import pandas as pd
import pytest

import privtraj as pt
from mixed_clinic import TIMES, mixed_model, mixed_records
from privtraj.assess import ask as asking
from privtraj.assess import quality
from privtraj.cli import main

CODES = ["c0", "c1", "c2", "c3", "c4", "c5"]
SPANS = [f"{k}..{k + 1}" for k in range(4)]


def population(rng):
    """Groups of any size whose numbers, trends and shares differ: all that a person is drawn by."""
    levels, apart = len(CODES), rng.normal(0, 0.8, (2, len(CODES)))
    shares, slopes = rng.dirichlet(np.full(levels, 1.5)), rng.normal(0, 0.4, levels)
    return shares, apart, slopes, rng.uniform(0.05, 0.7, levels), rng.uniform(-0.8, 0.8)


def drawn(truth, n, rng):
    shares, apart, slopes, smokers, together = truth
    t, code = 4 * rng.random(n), rng.choice(len(CODES), n, p=shares)
    y, other = rng.standard_normal((2, n))
    x = together * y + math.sqrt(1 - together**2) * other + apart[1][code]
    return pd.DataFrame(
        {
            "time": t,
            "y": np.clip(y + apart[0][code] + slopes[code] * (t / 4 - 0.5), -6, 6),
            "x": np.clip(x, -6, 6),
            "code": np.array(CODES)[code],
            "smoker": rng.random(n) < smokers[code],
            "period": np.array(SPANS)[t.astype(int)],
        }
    )


def fitted(table, epsilon=1.0, seed=1):
    columns = {"y": (-6.0, 6.0), "x": (-6.0, 6.0), "code": CODES, "smoker": bool}
    snapshots = pt.Snapshots.from_table(table, time="time", time_range=(0, 4), columns=columns)
    return pt.TrajectorySynthesizer(epsilon, 1e-5, seed=seed).fit(snapshots)


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(2)
    return fitted(drawn(population(rng), 3000, rng))


@pytest.fixture(scope="module")
def numbers():
    """A model without categories."""
    rng = np.random.default_rng(3)
    times = rng.random(2000)
    points = 0.5 + 0.2 * (times[:, None] - 0.5) + 0.1 * rng.standard_normal((2000, 2))
    snapshots = pt.Snapshots.from_arrays(times, points, bounds=[(0, 1)] * 2, time_range=(0, 1))
    return pt.TrajectorySynthesizer(2.0, 1e-5, seed=1).fit(snapshots)


# What is said ---------------------------------------------------------------------------------


def test_an_answer_is_of_the_people_of_the_model():
    """By hand: of a model whose particles are known, without intervals, as no fit has made it."""
    model, values = mixed_model(), mixed_records(400, 1)
    hb, stage, smoker = values[..., 0], values[..., 3], values[..., 4]
    (row,) = model.ask("mean hb where smoker=true").rows
    assert row["value"] == pytest.approx(np.nanmean(hb[smoker == 1]), abs=0.1)
    assert row["low"] is None
    shares = [row["value"] for row in model.ask("share stage").rows]
    assert sum(shares) == pytest.approx(1)
    assert shares[0] == pytest.approx(np.mean(stage == 0), abs=0.06)
    (row,) = model.ask("share stage=II,III").rows
    assert row["value"] == pytest.approx(sum(shares[1:3]))
    by = model.ask("median hb by smoker, 2 periods")
    assert [(row["smoker"], row["year"]) for row in by.rows] == [
        (smokes, span) for smokes in ("false", "true") for span in ("0..1", "1..2")
    ]
    assert by.rows[2]["value"] - by.rows[0]["value"] == pytest.approx(3, abs=0.3)
    (row,) = model.ask("trend weight").rows
    slope = np.polyfit(np.tile(TIMES, 400), values[..., 1].ravel(), 1)[0]
    assert row["value"] == pytest.approx(slope, abs=0.7)


def test_dates_have_years_and_months():
    rng = np.random.default_rng(0)
    days = rng.integers(0, 730, 800)
    table = {"time": np.datetime64("2022-01-01") + days, "y": days / 730 + rng.random(800)}
    known = {"time": "time", "bounds": {"y": (0, 2)}, "features": ["y"]}
    snapshots = pt.Snapshots.from_table(table, time_range=("2022-01-01", "2024-01-01"), **known)
    model = pt.TrajectorySynthesizer(4.0, 1e-5, seed=1).fit(snapshots)
    asked = asking.Columns(model)
    assert asked.asked("mean y by year").keys[0].labels == ("2022", "2023")
    assert asked.asked("count by month").keys[0].labels[::12] == ("2022-01", "2023-01")
    assert asked.asked("count by 2 periods").keys[0].labels[0] == "2022-01-01..2023-01-01"
    assert asked.asked("count by 6 parts of y").keys[0].labels[:2] == ("0..0.333", "0.333..0.667")
    asked.low, asked.high = 0.0, 3600.0  # of one hour, days tell nothing apart
    assert (
        asked.asked("count by 2 periods").keys[0].labels[1] == "1970-01-01T00:30..1970-01-01T01:00"
    )
    answer = model.ask("trend y")
    assert answer.unit == "per year"
    assert answer.rows[0]["low"] < 0.5 < answer.rows[0]["high"]
    (row,) = model.ask("mean y where time=2023-01-01..").rows
    assert row["low"] < 1.25 < row["high"]


def test_a_lost_group_has_no_number(model):
    rows = model.ask("mean y by code, 40 periods").rows
    lost = [row for row in rows if row["lost"]]
    assert lost
    assert all(row["value"] is None and row["low"] is None for row in lost)
    few = fitted(drawn(population(np.random.default_rng(1)), 40, np.random.default_rng(1)))
    assert all(row["lost"] for row in few.ask("mean y by code").rows)


def test_less_people_are_less_sure(model):
    def width(row):
        return row["high"] - row["low"]

    (whole,), parts = model.ask("mean y").rows, model.ask("mean y by 4 periods").rows
    assert all(width(part) > width(whole) for part in parts)


def test_an_answer_is_a_table(model, tmp_path, capsys):
    answer = model.ask("share smoker=true by code")
    frame = answer.to_pandas()
    assert list(frame.columns) == ["code", "people", "value", "low", "high", "lost"]
    assert "90 % interval" in repr(answer)
    model.save(tmp_path / "m.privtraj", not_private=True)
    for name in ("a.csv", "a.json", "a.parquet"):
        ends = ["--out", str(tmp_path / name), "--json"]
        assert main(["ask", str(tmp_path / "m.privtraj"), "share smoker=true by code", *ends]) == 0
        assert json.loads(capsys.readouterr().out)["rows"] == json.loads(json.dumps(answer.rows))
    assert json.loads((tmp_path / "a.json").read_text())["rows"] == list(answer.rows)
    assert pd.read_parquet(tmp_path / "a.parquet")["value"].tolist() == frame["value"].tolist()


def test_refits_are_made_once(numbers, monkeypatch):
    first = numbers.ask("mean x1 by 3 periods")
    fits = []
    monkeypatch.setattr(quality, "simulate", lambda *args, **more: fits.append(args))
    assert numbers.ask("mean x1 by 3 periods").rows == first.rows
    truth = 0.5 + 0.2 * (np.array([1, 3, 5]) / 6 - 0.5)
    inside = [row["low"] <= x <= row["high"] for row, x in zip(first.rows, truth, strict=True)]
    assert sum(inside) >= 2
    assert not numbers.ask("count").rows[0]["lost"]
    assert not fits


# How often it is true -------------------------------------------------------------------------

STATISTICS = {
    "mean y": lambda some: some["y"].mean(),
    "median x": lambda some: some["x"].median(),
    "p90 y": lambda some: some["y"].quantile(0.9),
    "trend y": lambda some: np.polyfit(some["time"], some["y"], 1)[0],
    "correlation y, x": lambda some: some["y"].corr(some["x"]),
    "share smoker=true": lambda some: some["smoker"].mean(),
}
BY = {"code": ["code"], "4 periods": ["period"], "code, 4 periods": ["code", "period"]}


@pytest.mark.thorough
def test_intervals_hold_the_truth_of_random_populations():
    inside = {}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        truth, people = population(rng), (2000, 5000)[seed % 2]
        model = fitted(drawn(truth, people, rng), (0.5, 1.0, 2.0)[seed % 3], seed)
        everybody = drawn(truth, 100_000, rng)
        for what, statistic in STATISTICS.items():
            for by, names in BY.items():
                groups = {key: statistic(some) for key, some in everybody.groupby(names)}
                for row in model.ask(f"{what} by {by}").rows:
                    key = tuple(row["time" if name == "period" else name] for name in names)
                    if row["value"] is not None and key in groups:
                        held = row["low"] <= groups[key] <= row["high"]
                        inside.setdefault((what, by), []).append(held)
    assert np.mean([held for some in inside.values() for held in some]) >= 0.85
    for asked, some in inside.items():
        # Five drawn again from ten other populations fail by means by group in none of 4,000 draws,
        # by some kind in 19 %. That is too hopeful: .8 should have failed by means in .8 %, and
        # did here, where 79 % of 29 hold.
        assert len(some) < 8 or np.mean(some) >= 0.7, asked
