"""Can a classifier tell synthetic people from real ones?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from privtraj.base.arrays import Floats, Mask
from privtraj.base.errors import InputError
from privtraj.columns.kinds import Column
from privtraj.metrics.clouds import as_points, pair, path_pair
from privtraj.metrics.encoding import known_columns, one_hot
from privtraj.metrics.registry import cloud_metric, path_metric

_FOLDS = 5
_WAVES = 50  # random Fourier features at each of two widths
_WIDTHS = (1.0, 0.3)  # in median distances
_MOST_PRODUCTS = 30  # features up to which all products are used
_RIDGE = 0.2  # of the mean square of a feature


@cloud_metric("auc", "classifier AUC", place=100, better="0.5", least=_FOLDS)
def two_sample_auc(
    synthetic: Any,
    real: Any,
    *,
    folds: int = _FOLDS,
    most: int = 1000,
    seed: int = 0,
    columns: Sequence[Column] | None = None,
) -> float:
    """AUC of a classifier that tells synthetic from real people (n, d), (k, d): the chance that a
    synthetic person it has not seen looks more synthetic to it than a real one.

    0.5 is best: they cannot be told apart by this classifier, which is ridge regression on the
    features, their products, and random Fourier features of two widths. 1 means told apart always.
    Mean over `folds` of stratified cross-validation; equally many people of both kinds, at most
    `most`, drawn at random. Under equal distributions it scatters around 0.5 by about
    0.5 / sqrt(people of a kind), and can fall below.

    columns: of points in the unit cube, if some are categories, which are then one-hot encoded.
    """
    x, y = pair(synthetic, real)
    if columns is not None:
        x, y = (one_hot(side, known_columns(columns, side.shape[1])) for side in (x, y))
    size = min(len(x), len(y), most)
    if size < folds or folds < 2:
        raise InputError(f"{folds} folds need at least two folds and {folds} people of each kind")
    rng = np.random.default_rng(seed)
    x, y = (points[rng.permutation(len(points))[:size]] for points in (x, y))
    features = _features(np.concatenate([x, y]), rng)
    kind = np.repeat([1.0, -1.0], size)
    fold = np.tile(np.arange(size) % folds, 2)
    aucs = []
    for part in range(folds):
        seen = fold != part
        score = features[~seen] @ _ridge(features[seen], kind[seen])
        aucs.append(_auc(score, kind[~seen] > 0))
    return float(np.mean(aucs))


@path_metric("path_auc", "classifier AUC of paths", place=60, better="0.5", least=_FOLDS)
def path_auc(
    synthetic: Any, real: Any, *, seed: int = 0, columns: Sequence[Column] | None = None
) -> float:
    """`two_sample_auc` of whole paths (n, T, d), (k, T, d), each a point of T d features."""
    x, y = path_pair(synthetic, real)
    if columns is not None:
        x, y = (one_hot(side, known_columns(columns, side.shape[2])) for side in (x, y))
    return two_sample_auc(as_points(x), as_points(y), seed=seed)


def _features(points: Floats, rng: np.random.Generator) -> Floats:
    """(n, p) standard scores of coordinates, products and waves."""
    z = _standard(points)
    d = z.shape[1]
    i, j = np.triu_indices(d) if d <= _MOST_PRODUCTS else (np.arange(d), np.arange(d))
    some = z[rng.permutation(len(z))[:200]]
    gaps = np.linalg.norm(some[:, None] - some[None, :], axis=2)
    middle = max(float(np.median(gaps)), 1e-9)
    waves = []
    for width in _WIDTHS:
        angles = z @ rng.standard_normal((d, _WAVES)) / (width * middle)
        waves.append(np.cos(angles + rng.uniform(0, 2 * np.pi, _WAVES)))
    return _standard(np.concatenate([z, z[:, i] * z[:, j], *waves], axis=1))


def _standard(columns: Floats) -> Floats:
    spread = columns.std(axis=0)
    return (columns - columns.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def _ridge(features: Floats, target: Floats) -> Floats:
    """w that minimises |A w - t|^2 / n + ridge |w|^2."""
    square = features.T @ features / len(features)
    square[np.diag_indices_from(square)] += _RIDGE
    return np.asarray(np.linalg.solve(square, features.T @ target / len(features)), np.float64)


def _auc(score: Floats, positive: Mask) -> float:
    """P(score of a positive > score of a negative) + P(equal) / 2."""
    from scipy.stats import rankdata

    count = int(positive.sum())
    ranks = rankdata(score)[positive].sum() - count * (count + 1) / 2
    return float(ranks / (count * (len(score) - count)))
