"""Two groups with nearly nobody between them: what blurs when records are coded as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from privtraj.datasets.example import Example, labelled

SUGAR_COLUMNS: dict[str, Any] = {
    "hba1c": {"kind": "number", "bounds": [3.5, 13.5]},
    "diabetes": {"kind": "boolean"},
    "sex": {"kind": "category", "values": ["F", "M"], "fixed": True},
    "bmi": {"kind": "number", "bounds": [14.0, 54.0]},
    "age": {"kind": "number", "bounds": [18.0, 98.0]},
}
SUGAR_TIME_RANGE = (0.0, 2.0)  # years
SUGAR_GAP = (6.0, 7.0)
"""HbA1c that 1.4 % of the people have."""
SUGAR_CORRELATION = 0.50
"""Of HbA1c and BMI, over all people."""


def sugar_groups(n: int = 5300, seed: int = 0) -> Example:
    """One record of each of n people: HbA1c, which the diagnosis decides, sex, BMI, age.

    HbA1c is N(5.2, .3^2) without diabetes and N(8.4, .75^2) with it, which 37 % of the people have
    at the start and 2 % more a year later. BMI goes with HbA1c within both groups and between them,
    .50 in all. Fresh draws, with another seed, are the truth.
    """
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    times = rng.uniform(*SUGAR_TIME_RANGE, n).round(3)
    ill = rng.random(n) < 0.37 + 0.02 * times
    male = rng.random(n) < 0.5
    score, other, years = rng.standard_normal((3, n))
    sugar = np.where(ill, 8.4 + 0.75 * score, 5.2 + 0.3 * score)
    bmi = 26.2 + 3.6 * ill + 0.4 * times + 1.3 * score + 3.45 * other + 0.5 * male
    age = np.where(ill, 64.0, 51.0) + 10 * years + 2 * other
    named = {
        "hba1c": sugar.round(2),
        "diabetes": pa.array(ill),
        "sex": labelled(male, ["F", "M"]),
        "bmi": bmi.round(1),
        "age": age.round(),
    }
    ids = [f"P{k:06d}" for k in range(n)]
    return Example(pa.table({"id": ids, "time": times, **named}), SUGAR_COLUMNS, SUGAR_TIME_RANGE)
