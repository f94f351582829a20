"""PrivPGD: its two steps against what they minimise, and whole fits of mixed tables."""

import numpy as np
import ot
import pytest

import methods as descent
from mixed_clinic import two_groups
from privtraj.base.errors import InputError

pytestmark = pytest.mark.thorough


def test_shares_are_of_the_people_that_all_tables_count_together():
    tables = [np.array([[10.0, 30.0]]), np.array([[22.0, 22.0, 8.0, 0.0]])]
    few, many = descent.shares(tables)
    people = (40 / 2 + 52 / 4) / (1 / 2 + 1 / 4)
    np.testing.assert_allclose(few, tables[0] / people)
    np.testing.assert_allclose(many, tables[1] / people)


def test_a_table_of_shares_is_its_own_projection_and_signed_ones_become_shares():
    rng = np.random.default_rng(0)
    centres = descent._centres([4, 3])
    shares = rng.dirichlet(np.ones(12), 2)
    np.testing.assert_allclose(descent.projected(shares, centres, rng), shares, atol=0.01)
    noisy = shares + 0.05 * rng.standard_normal(shares.shape)
    found = descent.projected(noisy, centres, rng)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert (found >= 0).all()
    plain = np.maximum(noisy, 0) / np.maximum(noisy, 0).sum(axis=1, keepdims=True)
    cost = ot.dist(centres, centres, "euclidean")
    for k in range(2):
        assert ot.emd2(found[k], shares[k], cost) < 1.05 * ot.emd2(plain[k], shares[k], cost)


def test_the_slope_is_that_of_sliced_transport():
    """On a line sliced W2 squared is W2 squared: 2 (x - its partner), times m over m."""
    rng = np.random.default_rng(1)
    x, y = rng.random((2, 3, 20, 1))
    partner = np.take_along_axis(np.sort(y, axis=1), np.argsort(np.argsort(x, axis=1), axis=1), 1)
    np.testing.assert_allclose(descent.sliced_slope(x, y, rng), 2 * (x - partner), atol=1e-12)


def test_particles_come_to_what_is_wanted_of_their_pairs():
    rng = np.random.default_rng(2)
    truth = (
        rng.standard_normal((1, 400, 3))
        @ np.linalg.cholesky([[1, 0.8, 0], [0.8, 1, -0.5], [0, -0.5, 1]]).T
    )
    truth = np.clip(0.5 + 0.12 * truth, 0, 1)
    pairs = [(0, 1), (0, 2), (1, 2)]
    wanted = [truth[..., list(pair)] for pair in pairs]
    found = descent.descended(rng.random((1, 400, 3)), pairs, wanted, 400, rng)
    np.testing.assert_allclose(np.corrcoef(found[0].T), np.corrcoef(truth[0].T), atol=0.08)
    np.testing.assert_allclose(found[0].std(axis=0), truth[0].std(axis=0), rtol=0.1)


def test_a_fit_of_a_mixed_table_is_private_and_near_it():
    snapshots = two_groups(3000)
    model = descent.PrivPGD(20.0, 1e-5, seed=1, points=300, steps=300).fit(snapshots)
    (entry,) = model.certificate.ledger
    assert entry["mechanism"] == "Gaussian"
    assert model.certificate.verify() <= 20
    ill = model.particles[..., 1] > 0.5
    assert set(np.unique(model.particles[..., 1])) == {0.25, 0.75}
    assert ill.mean() == pytest.approx(0.39, abs=0.06)
    sugar = model.particles[..., 0] * 10 + 3.5
    # sliced transport in the plane of a number and two levels blurs the groups a little
    assert sugar[ill].mean() == pytest.approx(8.4, abs=0.8)
    assert sugar[~ill].mean() == pytest.approx(5.2, abs=0.8)


def test_one_column_has_a_table_of_its_own(snapshots_of):
    clouds = [np.full((200, 1), 0.2), np.full((200, 1), 0.8)]
    model = descent.PrivPGD(5.0, 1e-5, seed=1, points=50, steps=100).fit(snapshots_of(clouds))
    np.testing.assert_allclose(model.particles.mean(axis=(1, 2)), [0.2, 0.8], atol=0.1)


def test_gaussian_noise_needs_a_delta(snapshots_of):
    with pytest.raises(InputError, match="delta above 0"):
        descent.PrivPGD(delta=0.0).fit(snapshots_of([[[0.5]], [[0.5]]]))
