"""Models to write reports about: made by hand, so that they are the same in every run."""

import numpy as np
import pytest

from privtraj.model.model import TrajectoryModel
from privtraj.privacy.certificate import certify
from privtraj.privacy.events import GaussianSum, LaplaceCounts
from privtraj.privacy.ledger import Ledger


def _made(
    features=("height", "weight"),
    times=5,
    *,
    private=True,
    measure="counts",
    adjacency="add-remove",
    dates=False,
    particles=24,
    time_name="age",
    epsilon=1.0,
    **more,
):
    """A model whose people drift from the lower left to the upper right of the box."""
    d, rng = len(features), np.random.default_rng(0)
    ledger = Ledger(epsilon, 1e-5, adjacency)
    ledger.spend(LaplaceCounts(0.02, "people per time"))
    if measure == "counts":
        ledger.spend(LaplaceCounts(0.4 * epsilon, "people per cell"))
    else:
        ledger.spend(GaussianSum(16.0, "clipped sums of a step"), times=8)
    knots = np.linspace(0.0, 20.0, times)
    if dates:
        knots = np.datetime64("2024-03-01", "s").astype(np.int64) + 86400.0 * np.arange(times)
    drift = np.linspace(0.35, 0.65, times)[:, None, None]
    unit = np.clip(drift + 0.08 * rng.standard_normal((times, particles, d)), 0.02, 0.98)
    diagnostics = {
        "people_per_time": [500.0 + 10 * k for k in range(times)],
    }
    if measure == "counts":
        diagnostics["significant_share"] = [0.9] * times
    else:
        diagnostics |= {
            "marginal_error": 0.03,
            "noise_over_bandwidth": 0.1,
            "effective_temperature": 1.5,
        }
    public = {"most records of one person": 1, "bounds": {name: [0, 100] for name in features}}
    return TrajectoryModel(
        particles=unit.astype(np.float32).astype(float),
        weights=np.full((times, particles), 1 / particles),
        bandwidth=np.full(times, 0.03),
        diffusivity=0.01,
        numeric_times=knots,
        bounds=more.pop("bounds", np.tile([0.0, 100.0], (d, 1))),
        features=tuple(features),
        time_name=time_name,
        datetime=dates,
        certificate=certify(ledger, public_inputs=public, private_noise=private),
        settings={"measure": measure, "particles": particles},
        diagnostics=diagnostics | more,
    ).sealed()


@pytest.fixture(scope="session")
def made_model():
    """Function that makes a model; see `_made`."""
    return _made
