"""A clinic with numbers, a sex and a diagnosis that changes: mixed records whose truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privtraj.base.arrays import Floats, Ints
from privtraj.base.errors import InputError
from privtraj.datasets.example import Example, labelled

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
        raise InputError(f"times must be years from {low:g} to {high:g}, in increasing order")
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
