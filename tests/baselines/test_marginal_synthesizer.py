"""AIM and MST by OpenDP: run where they are installed, explained where they are not."""

import sys

import numpy as np
import pytest

from privtraj.baselines import MarginalSynthesizer
from privtraj.errors import InputError


def test_a_missing_package_is_named_in_one_sentence(monkeypatch, snapshots_of, moving_blobs):
    monkeypatch.setitem(sys.modules, "mbi", None)
    with pytest.raises(InputError, match=r"pip install 'privtraj\[aim\]'$"):
        MarginalSynthesizer().fit(snapshots_of(list(moving_blobs(3, 20, 2))))


@pytest.mark.parametrize(("adjacency", "delta"), [("add-remove", 1e-5), ("replace-one", 0.0)])
def test_a_fit_says_that_it_was_outside_the_guard(adjacency, delta, snapshots_of, moving_blobs):
    pytest.importorskip("mbi")
    clouds = moving_blobs(3, 200, 2)
    model = MarginalSynthesizer(
        2.0, delta, adjacency=adjacency, algorithm="MST", cells=5, points=100
    ).fit(snapshots_of(list(clouds)))
    certificate = model.certificate
    assert certificate.verify() <= 2
    (entry,) = certificate.ledger
    assert entry["mechanism"] == "opaque"
    assert "outside the guard" in entry["what"]
    assert "OpenDP" in certificate.noise
    np.testing.assert_allclose(model.marginals.mean(axis=1), clouds.mean(axis=1), atol=0.15)
