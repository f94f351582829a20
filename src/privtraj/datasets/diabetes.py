"""Adults whose diagnosis changes: numbers, a category that never changes and others that do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from privtraj.base.arrays import Floats, Ints

if TYPE_CHECKING:
    import pyarrow as pa

DIAGNOSES = ("none", "prediabetes", "type 2", "type 2 with complications", "remission")
DIABETES_TIME_RANGE = (0.0, 24.0)
DIABETES_COLUMNS: dict[str, dict[str, Any]] = {
    "hba1c": {"kind": "number", "low": 4, "high": 14},
    "weight": {"kind": "number", "low": 35, "high": 180},
    "sex": {"kind": "category", "values": ["F", "M"], "fixed": True},
    "smoker": {"kind": "boolean"},
    "diagnosis": {"kind": "category", "values": list(DIAGNOSES)},
}
"""What is public about them: limits of the devices, and the code book."""

_FIRST = np.array([0.45, 0.27, 0.23, 0.05, 0.0])  # shares of diagnoses in month 0
_RATES = {  # per year, from one diagnosis to another
    ("none", "prediabetes"): 0.20,
    ("prediabetes", "none"): 0.12,
    ("prediabetes", "type 2"): 0.30,
    ("type 2", "type 2 with complications"): 0.15,
    ("type 2", "remission"): 0.20,
    ("remission", "type 2"): 0.15,
}
_WORSE = 1.6  # times as fast in smokers
_SMOKERS = {"F": 0.2, "M": 0.3}
_HBA1C = np.array([(5.2, 0.25), (5.9, 0.2), (8.0, 0.6), (9.4, 0.9), (6.0, 0.2)])  # %, mean and SD
_HBA1C_ENDS = np.array([(4.4, 6.3), (5.4, 6.3), (7.0, 11.0), (7.4, 13.0), (5.4, 6.3)])
_HEAVIER = np.array([0.0, 7.0, 12.0, 9.0, 1.0])  # kg, by diagnosis
_WEIGHT = {"F": (67.0, 10.0), "M": (81.0, 11.0)}  # kg, mean and SD without a diagnosis


def diabetes_clinic(n: int, seed: int = 0) -> pa.Table:
    """Simulated visits of n adults, one record each, within two years of a screening programme:
    id, month, hba1c, weight, sex, smoker, diagnosis.

    Diagnoses follow a Markov chain in continuous time, p(t) = p(0) exp(t Q), in which smokers get
    worse faster. HbA1c is below 6.3 % without diabetes and above 7 % with it, so that nobody is in
    between; weight depends on sex and diagnosis. Nothing of it is to be used as a reference.
    """
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    months = rng.uniform(*DIABETES_TIME_RANGE, n).round(2)
    sex = rng.choice(["F", "M"], n)
    smoker = rng.random(n) < np.where(sex == "F", _SMOKERS["F"], _SMOKERS["M"])
    shares = np.where(smoker[:, None], _shares(months, _WORSE), _shares(months, 1.0))
    diagnosis = (shares.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=len(_FIRST) - 1)
    return pa.table(
        {
            "id": [f"P{k:06d}" for k in range(n)],
            "month": months,
            "hba1c": _hba1c(diagnosis, rng),
            "weight": _weight(sex, diagnosis, rng),
            "sex": sex,
            "smoker": smoker,
            "diagnosis": np.array(DIAGNOSES)[diagnosis],
        }
    )


def diagnosis_shares(months: ArrayLike) -> Floats:
    """The true shares (T, 5) of the diagnoses at these months (T,), in the order of `DIAGNOSES`."""
    months = np.asarray(months, dtype=np.float64)
    smokers = sum(_SMOKERS.values()) / 2
    return smokers * _shares(months, _WORSE) + (1 - smokers) * _shares(months, 1.0)


def _shares(months: Floats, worse: float) -> Floats:
    """p(0) exp(t Q) (n, 5) at months (n,), by the eigenvectors of Q."""
    rates = np.zeros((len(_FIRST), len(_FIRST)))
    for (start, end), rate in _RATES.items():
        faster = worse if end not in ("none", "remission") else 1.0
        rates[DIAGNOSES.index(start), DIAGNOSES.index(end)] = rate * faster / 12
    values, vectors = np.linalg.eig(rates - np.diag(rates.sum(axis=1)))
    start = _FIRST @ vectors
    there: Floats = np.real((start * np.exp(np.outer(months, values))) @ np.linalg.inv(vectors))
    return there


def _hba1c(diagnosis: Ints, rng: np.random.Generator) -> Floats:
    mean, spread = _HBA1C[diagnosis].T
    low, high = _HBA1C_ENDS[diagnosis].T
    return np.clip(rng.normal(mean, spread), low, high).round(1)


def _weight(sex: Any, diagnosis: Ints, rng: np.random.Generator) -> Floats:
    mean, spread = np.where(sex[:, None] == "F", _WEIGHT["F"], _WEIGHT["M"]).T
    return np.clip(rng.normal(mean + _HEAVIER[diagnosis], spread), 40, 170).round(1)
