"""A score learned from runs: logistic regression with a ridge, which is enough for an attack.

Trained on some runs and tested on others, so whatever it learned by chance does not count.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from privtraj.base.arrays import Floats

RIDGE = 1.0  # precision of a weight's prior; features have variance one
LARGEST = 8.0  # standard deviations beyond which a feature is cut
NEWTON_STEPS = 20


class Classifier(NamedTuple):
    """score = <w, clip((x - centre) / scale)> + bias, the log odds of `present`."""

    centre: Floats
    scale: Floats
    weights: Floats  # (f + 1,), the last of them the bias

    def __call__(self, features: Floats) -> Floats:
        """Scores (n,) of features (n, f)."""
        scores: Floats = _inputs(features, self.centre, self.scale) @ self.weights
        return scores


def learned(without: Floats, present: Floats) -> Classifier:
    """From features (n, f), (k, f) in the two worlds: Newton's method on
    sum log(1 + e^(-s <w, x>)) + ridge |w|^2 / 2,  s = -1 or 1."""
    features = np.concatenate([without, present])
    truth = np.repeat([0.0, 1.0], [len(without), len(present)])
    centre, scale = features.mean(axis=0), features.std(axis=0)
    scale[scale <= 1e-9 * np.abs(centre)] = 1.0  # features that never change
    x = _inputs(features, centre, scale)
    weights = np.zeros(x.shape[1])
    for _ in range(NEWTON_STEPS):
        odds = expit(x @ weights)
        gradient = x.T @ (odds - truth) + RIDGE * weights
        curvature = (x.T * (odds * (1 - odds))) @ x + RIDGE * np.eye(x.shape[1])
        step = np.linalg.solve(curvature, gradient)
        weights -= step
        if np.abs(step).max() < 1e-6:
            break
    return Classifier(centre, scale, weights)


def held_out(without: Floats, present: Floats) -> tuple[Floats, Floats]:
    """Scores of all these runs, each by a classifier that did not see it: two folds."""
    scores = np.empty(len(without)), np.empty(len(present))
    for fold in (0, 1):
        classify = learned(without[fold::2], present[fold::2])
        for found, features in zip(scores, (without, present), strict=True):
            found[1 - fold :: 2] = classify(features[1 - fold :: 2])
    return scores


def _inputs(features: Floats, centre: Floats, scale: Floats) -> Floats:
    cut = np.clip((features - centre) / scale, -LARGEST, LARGEST)
    return np.column_stack([cut, np.ones(len(cut))])
