"""Many columns of every kind that go together, and one column of many values."""

from __future__ import annotations

from typing import Any

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.datasets.example import Example, drawn, labelled

_REGIONS = [f"R{k}" for k in range(1, 9)]
_STAGES = ["I", "II", "III", "IV", "V"]
_WARDS = [f"W{k:02d}" for k in range(1, 13)]
MANY_COLUMNS: dict[str, Any] = {
    "sex": {"kind": "category", "values": ["F", "M"], "fixed": True},
    "region": {"kind": "category", "values": _REGIONS, "fixed": True},
    "stage": {"kind": "ordered", "values": _STAGES},
    "smoker": {"kind": "boolean"},
    "insurance": {"kind": "category", "values": ["public", "private", "none"], "missing": True},
    "ward": {"kind": "category", "values": _WARDS},
    "age": {"kind": "number", "bounds": [18.0, 98.0]},
    "weight": {"kind": "number", "bounds": [35.0, 165.0]},
    "pressure": {"kind": "number", "bounds": [80.0, 220.0]},
    "sugar": {"kind": "number", "bounds": [3.5, 13.5], "missing": True},
    "visits": {"kind": "integer", "low": 0, "high": 20},
    "first seen": {"kind": "date", "low": "2015-01-01", "high": "2025-12-31"},
}
MANY_TIME_RANGE = (0.0, 3.0)  # years
LONG_VALUES = 200
LONG_TIME_RANGE = (0.0, 1.0)


def many_columns(n: int = 20_000, seed: int = 0) -> Example:
    """Simulated records of n people in twelve columns, six of them categories, over three years.

    Two hidden scores of a person, of health and of means, are behind all columns, and health gets
    worse by a third of a standard deviation a year. 7 % have no sugar measured, the healthy more
    often, and 4 % no insurance known. Fresh draws, with another seed, are the truth.
    """
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    times = rng.uniform(*MANY_TIME_RANGE, n).round(3)
    ill, means = rng.standard_normal((2, n))
    ill = ill + times / 3 - 0.5
    male = rng.random(n) < 0.5 + 0.04 * np.tanh(ill)
    region = drawn(_softmax(np.outer(means, np.linspace(-0.9, 0.9, 8))), rng)
    stage = np.digitize(ill + 0.6 * rng.standard_normal(n), [-0.6, 0.5, 1.4, 2.2])
    smoker = rng.random(n) < _logistic(-1.3 + 0.5 * ill - 0.6 * means)
    cover = _softmax(np.column_stack([0 * means + 1.5, means, -1.2 - means]))
    insurance = np.where(rng.random(n) < 0.04, 3, drawn(cover, rng))
    centre = np.linspace(-2.2, 2.2, len(_WARDS))
    ward = drawn(_softmax(-((ill[:, None] + 0.3 * male[:, None] - centre) ** 2)), rng)
    noise = rng.standard_normal((4, n))
    age = 52 + 9 * ill + 11 * noise[0]
    weight = 72 + 13 * male + 3 * ill - 2.5 * means + 11 * noise[1]
    pressure = 126 + 7 * ill + 0.25 * (weight - 78) + 4 * smoker + 10 * noise[2]
    sugar = np.exp(1.68 + 0.10 * ill + 0.004 * (weight - 78) + 0.08 * noise[3])
    absent = rng.random(n) < _logistic(-2.6 - 0.5 * ill)
    visits = np.minimum(rng.poisson(np.exp(1.0 + 0.4 * ill)), 20)
    start = np.datetime64("2015-01-01") + (rng.beta(2 + 2 * male, 2, n) * 4017).astype(int)
    named = {
        "sex": labelled(male, ["F", "M"]),
        "region": labelled(region, _REGIONS),
        "stage": labelled(stage, _STAGES),
        "smoker": pa.array(smoker),
        "insurance": labelled(insurance, ["public", "private", "none"]),
        "ward": labelled(ward, _WARDS),
        "age": age.round(),
        "weight": weight.round(1),
        "pressure": pressure.round(),
        "sugar": pa.array(sugar.round(1), mask=absent),
        "visits": visits,
        "first seen": pa.array(start.astype("datetime64[D]")),
    }
    ids = [f"P{k:06d}" for k in range(n)]
    return Example(pa.table({"id": ids, "time": times, **named}), MANY_COLUMNS, MANY_TIME_RANGE)


def one_long_category(n: int = 1_000_000, seed: int = 0) -> Example:
    """One category of 200 values, n people: shares in proportion to 1 / rank, ranks that change.

    Value k has the share 1 / (k + 1) at time 0, k = 0, .., 199, all of them over their sum, and
    that of value 199 - k at time 1, evenly in between.
    """
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    times = rng.random(n)
    shares = 1 / np.arange(1.0, LONG_VALUES + 1)
    rank = rng.choice(LONG_VALUES, n, p=shares / shares.sum())
    level = np.where(rng.random(n) < times, LONG_VALUES - 1 - rank, rank)
    values = [f"C{k:03d}" for k in range(LONG_VALUES)]
    table = pa.table({"time": times, "code": labelled(level, values)})
    return Example(table, {"code": {"kind": "category", "values": values}}, LONG_TIME_RANGE)


def _softmax(scores: Floats) -> Floats:
    """Shares (n, C) in proportion to e^score."""
    shares: Floats = np.exp(scores - scores.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def _logistic(x: Floats) -> Floats:
    return 1 / (1 + np.exp(-x))
