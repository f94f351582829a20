"""The two-sample classifier: half right by chance, and better where there is something to see."""

import numpy as np
import pytest

from privtraj import metrics
from privtraj.base.errors import InputError


def normal(n, d=2, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


def ring(n, seed):
    angle = np.random.default_rng(seed).uniform(0, 2 * np.pi, n)
    return np.sqrt(2) * np.column_stack([np.cos(angle), np.sin(angle)])


def test_equal_distributions_cannot_be_told_apart():
    found = [
        metrics.two_sample_auc(normal(200, seed=s), normal(200, seed=s + 50)) for s in range(8)
    ]
    assert np.mean(found) == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize(
    ("synthetic", "least"),
    [
        (normal(300, seed=1) + 10, 0.999),
        (normal(300, seed=1) + 0.5, 0.6),  # the best possible is 0.69
        (2 * normal(300, seed=1), 0.65),  # the same mean
        (ring(300, 1), 0.8),  # the same mean and covariance
        (normal(300, seed=1) @ [[1, 0.8], [0, 0.6]], 0.6),  # the same marginals, other correlation
    ],
)
def test_differences_of_every_kind_are_seen(synthetic, least):
    assert least < metrics.two_sample_auc(synthetic, normal(300)) <= 1


def test_units_do_not_matter_and_neither_does_which_side_is_larger():
    x, y = normal(150, seed=1) + 0.7, normal(400)
    plain = metrics.two_sample_auc(x, y)
    assert metrics.two_sample_auc(1e3 * x - 5, 1e3 * y - 5) == pytest.approx(plain, abs=0.02)
    assert metrics.two_sample_auc(y, x) == pytest.approx(plain, abs=0.08)


def test_constant_features_and_many_features_do_no_harm():
    x = np.column_stack([normal(60, seed=1), np.ones(60)])
    y = np.column_stack([normal(60, seed=2), np.ones(60)])
    assert 0.25 < metrics.two_sample_auc(x, y) < 0.75
    assert metrics.two_sample_auc(normal(80, 40, 1) + 1, normal(80, 40, 2)) > 0.9
    same = np.zeros((20, 2))
    assert metrics.two_sample_auc(same, same) == pytest.approx(0.5)


def test_too_few_people_are_refused():
    with pytest.raises(InputError):
        metrics.two_sample_auc(normal(4), normal(50))
    with pytest.raises(InputError):
        metrics.two_sample_auc(normal(50), normal(50), folds=1)
