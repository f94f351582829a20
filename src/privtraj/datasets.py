"""Data to try things on: simulated records, and loaders for pen strokes that take a path."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtraj.arrays import Floats
from privtraj.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

When = int | ArrayLike  # so many times spread over [0, 1], or the times themselves

# Three modes ----------------------------------------------------------------------------------

THREE_MODES_BOUNDS = ((-1.5, 1.5), (-1.5, 1.5))
THREE_MODES_VARIANCE = 0.005


def three_modes(
    n_per_time: int, times: When = 10, seed: int = 0, *, dimensions: int = 2, rotation_seed: int = 0
) -> tuple[Floats, Floats]:
    """Times (n,) and points (n, D), n = n_per_time T: independent people at each time u.

        upper (-cos pi u, sin pi u)    line (2u - 1, 0)    lower (-cos pi u, -sin pi u)

    One third of the people are on each mode, with N(0, .005 I) noise. times: T times spread over
    [0, 1], or the times themselves. dimensions: D > 2 places the plane in R^D by a random
    orthonormal map, which depends on `rotation_seed` alone, and the noise fills all D dimensions;
    every coordinate has the bounds (-1.5, 1.5) in any D.
    """
    u = _unit_times(times)
    # Shifting the modes by one at each time spreads the remainder of n_per_time / 3.
    modes = (np.arange(n_per_time)[None, :] + np.arange(len(u))[:, None]) % 3
    centres = three_modes_centres(u)[np.arange(len(u))[:, None], modes]
    points = _noisy(centres, seed, dimensions, rotation_seed)
    return np.repeat(u, n_per_time), points.reshape(-1, dimensions)


def three_modes_paths(
    n: int, times: When = 10, seed: int = 0, *, dimensions: int = 2, rotation_seed: int = 0
) -> Floats:
    """Paths (n, T, D) of the people of `three_modes`: each stays on its mode, with fresh noise."""
    centres = three_modes_centres(_unit_times(times))[:, np.arange(n) % 3].swapaxes(0, 1)
    return _noisy(centres, seed, dimensions, rotation_seed)


def _unit_times(times: When) -> Floats:
    u = np.linspace(0.0, 1.0, times) if isinstance(times, int) else np.asarray(times, np.float64)
    if u.ndim != 1 or len(u) == 0 or not ((u >= 0) & (u <= 1)).all():
        raise InputError("times must be a number of times, or times between 0 and 1")
    return u


def three_modes_centres(u: Floats) -> Floats:
    """Centres (T, 3, 2) of the three modes."""
    x, y, zero = -np.cos(np.pi * u), np.sin(np.pi * u), np.zeros_like(u)
    return np.stack([[x, y], [2 * u - 1, zero], [x, -y]]).transpose(2, 0, 1)


def _noisy(centres: Floats, seed: int, dimensions: int, rotation_seed: int) -> Floats:
    """Centres (..., 2) mapped to R^D, plus noise."""
    placed = centres @ _frame(dimensions, rotation_seed)
    noise = np.random.default_rng(seed).standard_normal(placed.shape)
    return placed + np.sqrt(THREE_MODES_VARIANCE) * noise


def _frame(dimensions: int, seed: int) -> Floats:
    """Two orthonormal rows (2, D); the identity when D = 2."""
    if dimensions < 2:
        raise InputError(f"dimensions is {dimensions}: the three modes need at least two")
    if dimensions == 2:
        return np.eye(2)
    columns, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((dimensions, 2)))
    return columns.T


# Known processes ------------------------------------------------------------------------------

PROCESS_BOUNDS = (-1.5, 1.5)  # of every coordinate
PROCESSES = ("ornstein-uhlenbeck", "double-well", "bifurcation")

_FINEST = 1 / 256  # time step of a simulation
_SHAKE = 0.4  # standard deviation of the noise per unit of time


def process_paths(
    name: str, n: int, times: When = 10, seed: int = 0, *, dimensions: int = 2
) -> Floats:
    """Paths (n, T, D) of a stochastic differential equation over [0, 1], by Euler's method.

        ornstein-uhlenbeck   dx = 6 (c(t) - x) dt + .4 dB,  c = (1.6 t - .8, .6 sin 2 pi t)
        double-well          dx_1 = 6 (x_1 - x_1^3) dt + .4 dB, from the ridge: half fall either way
        bifurcation          dx_1 = 1.6 dt,  dx_2 = 12 (a(t) x_2 - x_2^3) dt, a from -1 to 1 at 1/3

    Coordinates without an equation of their own return to 0 like the first. Paths are followed
    through all times, so true trajectories are known.
    """
    if name not in PROCESSES:
        raise InputError(f"there is no process '{name}': use one of {', '.join(PROCESSES)}")
    if dimensions < 2:
        raise InputError(f"dimensions is {dimensions}: the processes need at least two")
    u = _unit_times(times)
    rng = np.random.default_rng(seed)
    x = 0.15 * rng.standard_normal((n, dimensions))
    if name != "double-well":
        x[:, 0] -= 0.8
    seen, now = [], 0.0
    for moment in u:
        grid = np.linspace(now, moment, math.ceil((moment - now) / _FINEST) + 1)
        for t, dt in zip(grid[:-1], np.diff(grid), strict=True):
            noise = math.sqrt(dt) * _SHAKE * rng.standard_normal(x.shape)
            x = np.clip(x + dt * _drift(name, t, x) + noise, *PROCESS_BOUNDS)
        now = float(moment)
        seen.append(x)
    return np.stack(seen, axis=1)


def _drift(name: str, t: float, x: Floats) -> Floats:
    drift = -6 * x
    if name == "ornstein-uhlenbeck":
        drift[:, 0] += 6 * (1.6 * t - 0.8)
        drift[:, 1] += 6 * 0.6 * math.sin(2 * math.pi * t)
    elif name == "double-well":
        drift[:, 0] = 6 * (x[:, 0] - x[:, 0] ** 3)
    else:
        drift[:, 0] = 1.6
        drift[:, 1] = 12 * (min(3 * t - 1, 1.0) * x[:, 1] - x[:, 1] ** 3)
    return drift


# Growth clinic --------------------------------------------------------------------------------

GROWTH_BOUNDS = {"height": (40.0, 210.0), "weight": (1.0, 140.0)}
GROWTH_TIME_RANGE = (0.0, 20.0)
GROWTH_CORRELATION = 0.65  # of the standard scores of height and weight

_CHECKUPS = np.array([0, 1, 2, 4, 6, 9, 12, 15, 18, 24, 30, 36, 48, 60, 72]) / 12
_LARGEST_SCORE = 2.5

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
    ages = _visit_ages(n, rng)
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


def _visit_ages(n: int, rng: np.random.Generator) -> Floats:
    due = rng.choice(_CHECKUPS, n)
    checkup = np.abs(due + (0.01 + 0.04 * due) * rng.standard_normal(n))
    anytime = rng.uniform(*GROWTH_TIME_RANGE, n)
    return np.where(rng.random(n) < 0.5, checkup, anytime).round(3)


def _scores(n: int, rng: np.random.Generator) -> Floats:
    """Standard scores (2, n) of height and weight, drawn again while one is beyond the largest."""
    mixing = np.array([[1, 0], [GROWTH_CORRELATION, np.sqrt(1 - GROWTH_CORRELATION**2)]])
    scores = mixing @ rng.standard_normal((2, n))
    while (beyond := (np.abs(scores) > _LARGEST_SCORE).any(axis=0)).any():
        scores[:, beyond] = mixing @ rng.standard_normal((2, int(beyond.sum())))
    return scores


def _grown(sex: str, ages: Floats, scores: Floats) -> tuple[Floats, Floats]:
    """Heights and weights (n,) of children of one sex, of ages (n,) and standard scores (2, n)."""
    from scipy.interpolate import PchipInterpolator

    curves = (PchipInterpolator(_GROWTH[0], curve)(ages) for curve in _CURVES[sex])
    height, spread, power, weight, weight_spread = curves
    power = np.where(np.abs(power) < 1e-6, 1e-6, power)  # the formula tends to M exp(S z) there
    weights = weight * (1 + power * weight_spread * scores[1]) ** (1 / power)
    return height * (1 + spread * scores[0]), weights


# Pen strokes ----------------------------------------------------------------------------------

_PIXELS = 28


def strokes(
    path: str | os.PathLike[str], digit: int, times: int = 10, *, split: str = "train"
) -> NDArray[np.float32]:
    """Pen paths (n, T, 2) of one digit, (x, y) in [0, 1]^2 with y up.

    path: an .npz file with arrays `d<digit>_T<times>` of shape (n, T, 2), or the directory of
    text files that Edwin de Jong publishes as "MNIST digits stroke sequence data":
    `trainimg-<k>-points.txt` with a header, one "column,row" per line counted from 1 and negative
    markers where the pen lifts or stops. The labels come from `trainlabels.txt`, or from the first
    ten columns of `trainimg-<k>-targetdata.txt`. T points are taken evenly by index and scaled by
        x = (column - 1/2) / 28,    y = 1 - (row - 1/2) / 28.
    split: "train" or "test" images of such a directory.
    """
    path = Path(path)
    if path.is_dir():
        return _strokes_from_directory(path, digit, times, split)
    if not path.is_file():
        raise InputError(f"there is no file or directory '{path}': check the path")
    return _strokes_from_npz(path, digit, times)


def _strokes_from_npz(path: Path, digit: int, times: int) -> NDArray[np.float32]:
    try:
        file = np.load(path)
        names = list(file.files)
    except Exception:
        raise InputError(f"'{path}' cannot be read as an .npz file of strokes") from None
    with file:
        name = f"d{digit}_T{times}"
        if name not in names:
            raise InputError(
                f"'{path}' has no strokes of digit {digit} at {times} times: it has "
                + (", ".join(sorted(n for n in names if "_T" in n)) or "no strokes at all")
            )
        return np.asarray(file[name], dtype=np.float32)


def _strokes_from_directory(path: Path, digit: int, times: int, split: str) -> NDArray[np.float32]:
    if times < 1:
        raise InputError(f"times is {times}: take at least one point of each stroke")
    files = {int(f.name.split("-")[1]): f for f in path.glob(f"{split}img-*-points.txt")}
    if not files:
        raise InputError(
            f"the directory '{path}' has no files {split}img-*-points.txt: give the directory "
            "that holds them"
        )
    labels = _stroke_labels(path, sorted(files), split)
    chosen = [k for k, label in labels.items() if label == digit]
    if not chosen:
        raise InputError(
            f"the directory '{path}' has no strokes of digit {digit}: it has digits "
            + ", ".join(str(label) for label in sorted(set(labels.values())))
        )
    return np.stack([_pen_path(files[k], times) for k in chosen])


def _stroke_labels(path: Path, images: list[int], split: str) -> dict[int, int]:
    listed = path / f"{split}labels.txt"
    try:
        if listed.is_file():
            labels = np.loadtxt(listed, ndmin=1).astype(int)
            return {k: int(labels[k]) for k in images}
        targets = {k: path / f"{split}img-{k}-targetdata.txt" for k in images}
        return {k: int(np.argmax(np.loadtxt(f, max_rows=1)[:10])) for k, f in targets.items()}
    except (OSError, ValueError, IndexError):
        raise InputError(
            f"the directory '{path}' does not say which digits its images show: it needs a "
            f"complete {listed.name}, or {split}img-*-targetdata.txt for every image"
        ) from None


def _pen_path(path: Path, times: int) -> NDArray[np.float32]:
    """T points (T, 2) of one image."""
    try:
        cells = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
        drawn = cells[(cells >= 0).all(axis=1)]
        if drawn.shape[0] == 0 or drawn.shape[1] != 2:
            raise ValueError
    except ValueError:
        raise InputError(f"'{path}' has no pen points: it needs lines of column,row") from None
    at = np.rint(np.linspace(0, len(drawn) - 1, times)).astype(int)
    scaled = (drawn[at] - 0.5) / _PIXELS
    return np.column_stack([scaled[:, 0], 1 - scaled[:, 1]]).astype(np.float32)


# From paths to snapshots ----------------------------------------------------------------------


def one_snapshot_each(
    paths: ArrayLike, seed: int = 0, times: ArrayLike | None = None
) -> tuple[Floats, NDArray[Any]]:
    """Times (n,) and points (n, d) in which every path (.., T, d) is seen at most once.

    The paths are shuffled once and cut into T groups of floor(n / T), and of group i only the
    points at time i are kept. times: (T,), by default 0, 1, .., T - 1.
    """
    paths = np.asarray(paths)
    if paths.ndim != 3 or paths.shape[1] > len(paths):
        raise InputError("paths must have shape (n, T, d) with at least as many paths as times")
    n, n_times, _ = paths.shape
    at = np.arange(n_times) if times is None else np.asarray(times)
    if at.shape != (n_times,):
        raise InputError(f"times must list {n_times} times, as many as each path has")
    size = n // n_times
    groups = np.random.default_rng(seed).permutation(n)[: size * n_times].reshape(n_times, size)
    points = paths[groups, np.arange(n_times)[:, None]]
    return np.repeat(at.astype(np.float64), size), points.reshape(n_times * size, -1)
