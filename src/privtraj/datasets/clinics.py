"""Tables of two simulated clinics, one record per person: children who grow, height and weight by
age, modelled on public growth charts; adults whose diagnosis changes, with columns of every kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

GROWTH_BOUNDS = {"height": (40.0, 210.0), "weight": (1.0, 140.0)}
GROWTH_TIME_RANGE = (0.0, 20.0)
GROWTH_CORRELATION = 0.65  # of the standard scores of height and weight

_CHECKUPS = np.array([0, 1, 2, 4, 6, 9, 12, 15, 18, 24, 30, 36, 48, 60, 72]) / 12
_LARGEST_SCORE = 2.5
_MIXING = np.array([[1, 0], [GROWTH_CORRELATION, np.sqrt(1 - GROWTH_CORRELATION**2)]])

# Age, then height M, S and weight L, M, S of girls, then of boys: L (skewness), M (median),
# S (coefficient of variation); heights have L = 1.
# fmt: off
_GROWTH = np.array((
    (  0,  49.15, .0379,   .381,  3.23, .142,  49.88, .0380,   .349,  3.35, .146),
    (0.5,  65.73, .0345,  -.076,  7.30, .122,  67.62, .0317,   .126,  7.93, .110),
    (  1,  74.02, .0348,  -.202,  8.95, .123,  75.75, .0314,   .064,  9.65, .109),
    (  2,  84.98, .0408,  -.735, 12.06, .107,  86.45, .0403,  -.206, 12.67, .108),
    (  3,  93.92, .0420, -1.017, 13.87, .119,  94.96, .0406,  -.603, 14.33, .112),
    (  4, 100.75, .0432, -1.172, 15.79, .131, 102.22, .0413,  -.908, 16.23, .120),
    (  5, 107.66, .0442, -1.284, 17.93, .141, 108.90, .0425,  -.998, 18.39, .130),
    (  6, 114.71, .0449, -1.327, 20.24, .149, 115.39, .0436, -1.082, 20.68, .139),
    (  8, 127.59, .0459, -1.134, 25.63, .172, 127.88, .0451, -1.349, 25.64, .156),
    ( 10, 137.99, .0486,  -.851, 32.89, .196, 138.62, .0476, -1.214, 31.94, .178),
    ( 12, 151.19, .0488,  -.805, 41.65, .202, 149.05, .0499,  -.844, 40.47, .196),
    ( 14, 160.39, .0411, -1.102, 49.36, .189, 163.84, .0490,  -.633, 51.00, .191),
    ( 16, 162.55, .0398, -1.641, 53.88, .169, 173.51, .0432,  -.795, 60.92, .173),
    ( 18, 163.12, .0397, -1.854, 56.19, .160, 176.16, .0407, -1.065, 67.20, .162),
    ( 20, 163.34, .0396, -1.513, 58.22, .167, 176.85, .0404,  -.916, 70.60, .161),
)).T
# fmt: on
_CURVES = {"F": _GROWTH[1:6], "M": _GROWTH[6:]}


def growth_clinic(n: int, seed: int = 0) -> pa.Table:
    """Simulated check-ups of n children, one record per child: id, age, sex, height, weight.

        value = M (1 + L S z)^(1/L),   z standard normal, correlation .65 between the two

    L, M, S by age and sex are modelled on the WHO Child Growth Standards (2006) below two years and
    on the CDC growth charts (2000) from two years on, rounded, and interpolated between ages: close
    enough to look real, not to be used as a reference. Scores beyond 2.5, two children in 100,
    are drawn again. Age is in years, 0 to 20: half of the visits are routine check-ups of the early
    years, the rest spread over all ages. Height is in cm, weight in kg.
    """
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    due = rng.choice(_CHECKUPS, n)
    checkup = np.abs(due + (0.01 + 0.04 * due) * rng.standard_normal(n))
    anytime = rng.uniform(*GROWTH_TIME_RANGE, n)
    ages = np.where(rng.random(n) < 0.5, checkup, anytime).round(3)
    girl = rng.random(n) < 0.5
    scores = _scores(n, rng)
    height, weight = values = np.empty((2, n))
    for sex, rows in (("F", girl), ("M", ~girl)):
        values[:, rows] = _grown(sex, ages[rows], scores[:, rows])
    return pa.table(
        {
            "id": [f"C{k:06d}" for k in range(n)],
            "age": ages,
            "sex": np.where(girl, "F", "M"),
            "height": np.round(height, 1),
            "weight": np.round(weight, 1),
        }
    )


def growth_at(ages: ArrayLike, seed: int = 0) -> Floats:
    """Height and weight (n, 2) of n boys of these ages (n,), as in `growth_clinic`."""
    ages = np.asarray(ages, dtype=np.float64)
    scores = _scores(len(ages), np.random.default_rng(seed))
    return np.stack(_grown("M", ages, scores), axis=1)


def growth_paths(
    n: int,
    times: ArrayLike,
    seed: int = 0,
    *,
    persistence: tuple[float, float] | None = None,
) -> Floats:
    """Height and weight (n, T, 2) of n boys at these ages (T,), increasing: their true paths.

    The marginals are those of `growth_at`, but for the redrawing of both scores where only one is
    beyond 2.5. Every child keeps its standard scores, unless `persistence` = (a, tau) lets them
    change: they are then increasing functions of Gaussian scores with the autocorrelation

        r(h) = a + (1 - a) e^(-h / tau)

    h years later, so that Spearman's rank correlation of heights is 6/pi arcsin(r(h) / 2), and
    their plain correlation r(h) to .01.
    """
    from scipy.special import ndtr, ndtri

    ages = np.asarray(times, dtype=np.float64)
    low, high = GROWTH_TIME_RANGE
    rising = ages.ndim == 1 and len(ages) > 0 and (np.diff(ages) > 0).all()
    if not rising or ages[0] < low or ages[-1] > high:
        raise InputError(f"times must be ages from {low:g} to {high:g}, in increasing order")
    lasting, tau = (1.0, 1.0) if persistence is None else persistence
    if not (0 <= lasting <= 1 and tau > 0):
        raise InputError("persistence is a pair (a, tau) with a from 0 to 1 and tau above 0")
    rng = np.random.default_rng(seed)
    always, passing = (rng.standard_normal((2, n, count)) for count in (1, len(ages)))
    kept = np.exp(-np.diff(ages) / tau)
    for i, share in enumerate(kept, start=1):
        passing[..., i] = share * passing[..., i - 1] + np.sqrt(1 - share**2) * passing[..., i]
    free = np.sqrt(lasting) * always + np.sqrt(1 - lasting) * passing
    mixed = np.einsum("ij,jnt->int", _MIXING, free)
    beyond = ndtr(-_LARGEST_SCORE)
    scores = ndtri(beyond + (1 - 2 * beyond) * ndtr(mixed)).reshape(2, -1)
    values = _grown("M", np.tile(ages, n), scores)
    return np.stack(values, axis=1).reshape(n, len(ages), 2)


def _scores(n: int, rng: np.random.Generator) -> Floats:
    """Standard scores (2, n) of height and weight, drawn again while one is beyond the largest."""
    scores = _MIXING @ rng.standard_normal((2, n))
    while (beyond := (np.abs(scores) > _LARGEST_SCORE).any(axis=0)).any():
        scores[:, beyond] = _MIXING @ rng.standard_normal((2, int(beyond.sum())))
    return scores


def _grown(sex: str, ages: Floats, scores: Floats) -> tuple[Floats, Floats]:
    """Heights and weights (n,) of children of one sex, of ages (n,) and standard scores (2, n)."""
    from scipy.interpolate import PchipInterpolator

    curves = (PchipInterpolator(_GROWTH[0], curve)(ages) for curve in _CURVES[sex])
    height, spread, power, weight, weight_spread = curves
    power = np.where(np.abs(power) < 1e-6, 1e-6, power)  # the formula tends to M exp(S z) there
    weights = weight * (1 + power * weight_spread * scores[1]) ** (1 / power)
    return height * (1 + spread * scores[0]), weights


# Adults whose diagnosis changes ---------------------------------------------------------------

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
    mean, spread = _HBA1C[diagnosis].T
    hba1c = np.clip(rng.normal(mean, spread), *_HBA1C_ENDS[diagnosis].T).round(1)
    mean, spread = np.where(sex[:, None] == "F", _WEIGHT["F"], _WEIGHT["M"]).T
    weight = np.clip(rng.normal(mean + _HEAVIER[diagnosis], spread), 40, 170).round(1)
    return pa.table(
        {
            "id": [f"P{k:06d}" for k in range(n)],
            "month": months,
            "hba1c": hba1c,
            "weight": weight,
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
