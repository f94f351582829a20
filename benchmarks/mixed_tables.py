"""Tables of columns of every kind for the benchmarks, whose truth is known: a clinic, twelve
columns that go together, two groups with nearly nobody between them, a category of many values.

Each is an `Example`; fresh draws, with another seed, are the truth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from privtraj.base.arrays import Floats, Ints, Mask

if TYPE_CHECKING:
    import pyarrow as pa


class Example(NamedTuple):
    """Use as `Snapshots.from_table(example.table, **example.declared)`.

    table: one record per person.
    columns: kinds and domains by name, as files have them.
    time_range: of the column "time".
    """

    table: pa.Table
    columns: dict[str, Any]
    time_range: tuple[float, float]

    @property
    def declared(self) -> dict[str, Any]:
        """All that is public of it: arguments of `Snapshots.from_table`."""
        person = "id" if "id" in self.table.column_names else None
        said = {"time": "time", "columns": self.columns, "time_range": self.time_range}
        return said if person is None else {**said, "person": person}


def drawn(shares: Floats, rng: np.random.Generator) -> Ints:
    """Levels (...) drawn by shares (..., C) that sum to 1."""
    below = np.cumsum(shares, axis=-1)
    at = rng.random((*shares.shape[:-1], 1)) * below[..., -1:]
    return (at >= below).sum(axis=-1)


def labelled(levels: Ints | Mask, values: list[Any]) -> pa.Array:
    """An Arrow dictionary of levels (n,), null beyond the last of the values."""
    import pyarrow as pa

    indices = pa.array(levels.astype(np.int16), mask=levels >= len(values))
    return pa.DictionaryArray.from_arrays(indices, pa.array(values))


# A clinic -------------------------------------------------------------------------------------

_CODES = ["none", "I10", "E11", "J45", "F32", "M54", "K21", "N18", "G40", "L40", "D50", "B18"]
CLINIC_COLUMNS: dict[str, Any] = {
    "sex": {"kind": "category", "values": ["F", "M"], "fixed": True},
    "diagnosis": {"kind": "category", "values": _CODES},
    "smoker": {"kind": "boolean"},
    "pressure": {"kind": "number", "bounds": [80.0, 220.0]},
    "bmi": {"kind": "number", "bounds": [14.0, 54.0]},
    "hba1c": {"kind": "number", "bounds": [3.5, 13.5]},
}
CLINIC_TIME_RANGE = (0.0, 2.0)  # years
CLINIC_RARE = tuple(_CODES[7:])
"""Five codes that 5 % of the people have at any time, together."""

_RARE = np.array([1.6, 1.2, 1.0, 0.7, 0.5]) / 100
_FIRST = np.append(np.array([44, 19, 10, 7, 6, 5, 4]) / 100, _RARE)  # shares at time 0
_LATER = np.append(np.array([20, 28, 24, 5, 8, 6, 4]) / 100, _RARE)  # where jumps lead
_JUMPS = 0.5  # of the diagnosis, a year
_STOPS, _STARTS = 0.25, 0.05  # of smoking, a year

# By code: pressure, BMI and HbA1c of a woman who does not smoke, and what a year adds to them.
# fmt: off
_MEAN = np.array((
    (122, 25.0, 5.3), (148, 28.0, 5.6), (138, 32.0, 8.2), (124, 26.5, 5.4), (120, 26.0, 5.4),
    (128, 28.5, 5.6), (127, 29.5, 5.6), (152, 27.5, 6.3), (121, 25.0, 5.3), (126, 30.0, 5.7),
    (112, 22.5, 5.0), (124, 24.0, 5.9),
))
_A_YEAR = np.array((
    (2, .4, .05), (-5, .2, .10), (1, -.8, -.50), (1, .3, .05), (1, .8, .05),
    (1, .4, .05), (1, .4, .05), (3, -.3, .15), (0, .2, .00), (1, .4, .10),
    (2, .3, .05), (1, -.2, .10),
))
# fmt: on
_MALE, _SMOKES = np.array([5.0, 0.6, 0.10]), np.array([4.0, -1.2, 0.15])
_SPREAD = np.array([11.0, 3.2, 0.35])
_DIABETIC_SPREAD = np.array([12.0, 4.0, 0.90])
_TOGETHER = np.array([[1, 0.45, 0.15], [0.45, 1, 0.35], [0.15, 0.35, 1]])
_DIABETIC_TOGETHER = np.array([[1, 0.30, -0.10], [0.30, 1, 0.50], [-0.10, 0.50, 1]])
_LASTING, _FORGOTTEN = 0.7, 0.5  # of a person's deviation: the share that stays; years of the rest


def clinic_visits(n: int = 6000, seed: int = 0) -> Example:
    """Simulated visits of n people over two years, one record per person, as in `clinic_paths`.

    Fresh draws, with another seed, are the truth at the same times.
    """
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    times = rng.uniform(*CLINIC_TIME_RANGE, n).round(3)
    levels, numbers = _people(times[:, None], rng)
    values = [CLINIC_COLUMNS[name].get("values", [False, True]) for name in CLINIC_COLUMNS]
    columns = dict(zip(CLINIC_COLUMNS, levels[:, 0].T, strict=False))
    named = {name: labelled(column, values[k]) for k, (name, column) in enumerate(columns.items())}
    named["smoker"] = pa.array(columns["smoker"] == 1)
    named |= dict(zip(list(CLINIC_COLUMNS)[3:], numbers[:, 0].T.round(1), strict=True))
    ids = [f"P{k:06d}" for k in range(n)]
    return Example(pa.table({"id": ids, "time": times, **named}), CLINIC_COLUMNS, CLINIC_TIME_RANGE)


def clinic_paths(n: int, times: ArrayLike, seed: int = 0) -> Floats:
    """True paths (n, T, 6) at these years (T,): levels of the categories, then the numbers.

    diagnosis   jumps at rate 1/2 a year, to code c with chance l_c, from shares f at time 0:
                P(c at t) = l_c + (f_c - l_c) e^(-t / 2)
    smoker      stops at rate 1/4, starts at rate 1/20; 30 % of the men smoke at time 0 and 20 %
                of the women
    numbers     normal given sex, diagnosis, smoker and time: means by code that drift, other
                spreads and correlations for diabetes (E11); of a person's deviation, .7 of the
                variance stays and the rest is forgotten over half a year
    """
    at = np.asarray(times, dtype=np.float64)
    low, high = CLINIC_TIME_RANGE
    if at.ndim != 1 or len(at) == 0 or at[0] < low or at[-1] > high or (np.diff(at) <= 0).any():
        raise ValueError(f"times must be years from {low:g} to {high:g}, in increasing order")
    levels, numbers = _people(np.tile(at, (n, 1)), np.random.default_rng(seed))
    return np.concatenate([levels, numbers], axis=2)


def clinic_shares(times: ArrayLike) -> Floats:
    """Shares (T, 12) of the diagnoses at these years (T,), exactly."""
    left = np.exp(-_JUMPS * np.asarray(times, dtype=np.float64))[:, None]
    return _LATER + left * (_FIRST - _LATER)


def _people(times: Floats, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Levels (n, T, 3) and numbers (n, T, 3) of n people at their times (n, T)."""
    n, count = times.shape
    male = rng.random(n) < 0.48
    codes = np.arange(len(_CODES))
    diagnosis: Ints = rng.choice(codes, n, p=_FIRST)
    smoker = rng.random(n) < np.where(male, 0.3, 0.2)
    settled = _STARTS / (_STARTS + _STOPS)
    gaps = np.diff(times, axis=1, prepend=0.0)
    always, passing = rng.standard_normal((2, n, 3))
    levels, numbers = np.empty((n, count, 3), np.int64), np.empty((n, count, 3))
    for i in range(count):
        jumped = rng.random(n) > np.exp(-_JUMPS * gaps[:, i])
        diagnosis = np.where(jumped, rng.choice(codes, n, p=_LATER), diagnosis)
        left = np.exp(-(_STARTS + _STOPS) * gaps[:, i])
        smoker = rng.random(n) < settled + (smoker - settled) * left
        kept = np.exp(-gaps[:, i] / _FORGOTTEN)[:, None] if i else np.zeros((n, 1))
        passing = kept * passing + np.sqrt(1 - kept**2) * rng.standard_normal((n, 3))
        scores = np.sqrt(_LASTING) * always + np.sqrt(1 - _LASTING) * passing
        levels[:, i] = np.column_stack([male, diagnosis, smoker])
        numbers[:, i] = _mean(levels[:, i], times[:, i]) + _deviation(diagnosis, scores)
    return levels, numbers


def _mean(levels: Ints, times: Floats) -> Floats:
    """Of the numbers (n, 3), given the categories (n, 3)."""
    male, code, smoker = levels.T
    base = _MEAN[code] + times[:, None] * _A_YEAR[code]
    return base + male[:, None] * _MALE + smoker[:, None] * _SMOKES


def _deviation(code: Ints, scores: Floats) -> Floats:
    """From the mean (n, 3), by independent standard scores (n, 3)."""
    usual = scores @ np.linalg.cholesky(_TOGETHER).T * _SPREAD
    diabetic = scores @ np.linalg.cholesky(_DIABETIC_TOGETHER).T * _DIABETIC_SPREAD
    return np.where((code == _CODES.index("E11"))[:, None], diabetic, usual)


# Twelve columns, and one of many values -------------------------------------------------------

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


# Two groups -----------------------------------------------------------------------------------

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
