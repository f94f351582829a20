"""Rates and exponents from measured points, and from the rows of `theorems`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from privtraj.base.arrays import Floats
from reproduce.tables import Row, matching, mean_of, means_along, values_of

_EXPONENTS = (0.2, 4.0)


class Decay(NamedTuple):
    """value - limit = size exp(-rate t), fitted to the points first..last."""

    limit: float
    size: float
    rate: float
    noise: float
    first: int
    last: int


class Power(NamedTuple):
    """value = limit + factor x^exponent."""

    limit: float
    factor: float
    exponent: float

    def __call__(self, x: Floats) -> Floats:
        return self.limit + self.factor * x**self.exponent


def slope(x: ArrayLike, y: ArrayLike) -> float:
    """b of y = a x^b, by least squares of the logarithms."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def decay(t: Floats, value: Floats) -> Decay:
    """An exponential through values that settle in noise.

    The limit is the mean of the last third, the noise its standard deviation. The line is fitted to
    the logarithms from where half of the way is gone, as fast parts come first, to where three
    times the noise is left.
    """
    late = value[2 * len(value) // 3 :]
    limit, noise = float(late.mean()), float(late.std())
    left = value - limit
    first = int(np.argmax(left < left[0] / 2))
    below = np.flatnonzero(left[first:] < 3 * noise)
    last = min(max(first + (int(below[0]) if len(below) else len(left)), first + 3), len(left))
    points = slice(first, last)
    negative, start = np.polyfit(t[points], np.log(np.maximum(left[points], 1e-12)), 1)
    return Decay(limit, float(np.exp(start)), -float(negative), noise, first, last)


def power(x: ArrayLike, value: ArrayLike) -> Power:
    """A power law with an unknown limit: least squares for every exponent, then the best one."""
    x, value = np.asarray(x, np.float64), np.asarray(value, np.float64)

    def at(exponent: float) -> tuple[Floats, float]:
        columns = np.stack([np.ones_like(x), x**exponent], axis=1)
        factors, *_ = np.linalg.lstsq(columns, value, rcond=None)
        return factors, float(((columns @ factors - value) ** 2).sum())

    best = minimize_scalar(lambda p: at(p)[1], bounds=_EXPONENTS, method="bounded").x
    limit, factor = at(best)[0]
    return Power(float(limit), float(factor), float(best))


def bound(times: float, people: float) -> float:
    """Of Theorem 3.2, without its constant: max(1 / T, N^(-2/3) T^(-1/3))."""
    return max(1 / times, people ** (-2 / 3) * times ** (-1 / 3))


def fitted(rows: list[Row]) -> list[Row]:
    """Rates and exponents, as rows."""
    return [*_decays(rows), *_slopes(rows), *_powers(rows)]


def select(rows: list[Row], check: str, **values: Any) -> list[Row]:
    """Rows of a check that have these values."""
    return matching(rows, check=check, **values)


def curve(rows: list[Row]) -> tuple[Floats, Floats]:
    """Time (n,), and F (n,) as a mean over seeds, of the rows of one descent."""
    t, value = means_along(rows, "t", "F")
    return np.array(t), np.array(value)


def _decays(rows: list[Row]) -> list[Row]:
    """Of each of the descents, with the jackknife's standard error over seeds."""
    keys = ("T", "lam", "tau", "shift", "eta", "m")
    kinds = dict.fromkeys(tuple(row[k] for k in keys) for row in select(rows, "convergence"))
    decays = []
    for kind in kinds:
        settings = dict(zip(keys, kind, strict=True))
        these = select(rows, "convergence", **settings)
        t, value = curve(these)
        seeds = {row["seed"] for row in these}
        others = [[row for row in these if row["seed"] != seed] for seed in seeds]
        without = [decay(*curve(other)).rate for other in others if other]
        widest = mean_of(these, "widest")
        decays.append(
            {
                "check": "decay",
                **settings,
                "start": float(value[0]),
                **decay(t, value)._asdict(),
                "rate_error": float(np.std(without) * np.sqrt(len(seeds) - 1)) if without else 0.0,
                "bound": 2 * settings["tau"] / widest,
                "shift_rate": mean_of(these, "shift_rate"),
            }
        )
    return decays


def _slopes(rows: list[Row]) -> list[Row]:
    """In T for every N and in N for every T, seed by seed; those of the bound by the same fit."""
    cells = [
        {**row, "limit": bound(row["T"], row["N"])}
        for row in select(rows, "statistics", noise=True, factor=1.0)
    ]
    slopes = []
    for along, across in (("T", "N"), ("N", "T")):
        for fixed in values_of(cells, across):
            these = matching(cells, **{across: fixed})
            seeds = values_of(these, "seed")
            each = [slope(*_columns(matching(these, seed=s), along, "error")) for s in seeds]
            slopes.append(
                {
                    "check": f"slope in {along}",
                    across: fixed,
                    "slope": float(np.mean(each)),
                    "slope_deviation": float(np.std(each, ddof=1)) if len(each) > 1 else 0.0,
                    "slope_of_bound": slope(*_columns(these, along, "limit")),
                }
            )
    groups = (
        matching(cells, T=t, N=n) for t in values_of(cells, "T") for n in values_of(cells, "N")
    )
    ratios = [mean_of(group, "error") / group[0]["limit"] for group in groups if group]
    return [*slopes, {"check": "constant", "largest": max(ratios), "smallest": min(ratios)}]


def _columns(rows: list[Row], *names: str) -> list[list[float]]:
    return [[row[name] for row in rows] for name in names]


def _powers(rows: list[Row]) -> list[Row]:
    """G in 1 / m and in eta, with its limit."""
    m, by_m = means_along(select(rows, "particles"), "m", "G")
    eta, by_eta = means_along(select(rows, "steps"), "eta", "G")
    laws = {"particles": power(1 / np.array(m), by_m), "steps": power(eta, by_eta)}
    return [{"check": "power", "of": check, **law._asdict()} for check, law in laws.items()]
