"""Users who set JAX_ENABLE_X64 for their own work get the same bits as everybody else."""

import os
import subprocess
import sys

import jax
import numpy as np
import pytest

from privtraj.motion import sinkhorn

FITS = """
import hashlib, warnings
import jax, numpy as np
import privtraj as pt

warnings.simplefilter("ignore")
assert jax.config.jax_enable_x64 == {x64}
rng = np.random.default_rng(0)
times = np.repeat(np.arange(3.0), 150)
points = np.clip(0.2 + 0.2 * times[:, None] + 0.05 * rng.standard_normal((450, 2)), 0, 1)
snaps = pt.Snapshots.from_arrays(times, points, bounds=[(0, 1)] * 2, bins=np.arange(3.0))
table = dict(t=times, x=points[:, 0], y=points[:, 1], sex=rng.choice(["F", "M"], 450).tolist())
mixed = pt.Snapshots.from_table(
    table, time="t", bounds=dict(x=(0, 1), y=(0, 1)), columns=dict(sex=["F", "M"]),
    bins=np.arange(3.0),
)
particles = dict(particles=16, steps=4)
for data, method, small in (
    (snaps, "counts", dict(particles=32)),
    (snaps, "gradients", particles),
    (mixed, "tables", dict()),
):
    model = pt.TrajectorySynthesizer(2.0, 1e-4, measure=method, seed=1, **small).fit(data)
    paths = model.sample(20, times=np.linspace(0, 2, 7), seed=2)
    for array in (model.particles, model.weights, model.bandwidth, paths.values):
        print(method, array.dtype, hashlib.sha256(np.ascontiguousarray(array)).hexdigest())
"""


def fits(x64):
    """What a fresh process prints that fits and samples with JAX in this mode."""
    env = {**os.environ, "JAX_ENABLE_X64": str(int(x64))}
    command = [sys.executable, "-c", FITS.format(x64=x64)]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout


@pytest.mark.thorough
def test_fits_and_samples_have_the_same_bits_in_both_modes():
    assert fits(x64=True) == fits(x64=False)


def arguments(m=40):
    """x, y (B, m, d), reg (B,), a, b (B, m)."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(size=(2, 3, m, 2)).astype(np.float32)
    a, b = rng.dirichlet(np.ones(m), size=(2, 3)).astype(np.float32)
    return x, y, np.full(3, 0.01, np.float32), a, b


def settled():
    return sinkhorn._settled(arguments(), 1e-3)  # `settle` has threads with modes of their own


def projected():
    x, y, reg, a, b = arguments()
    potentials, *means = sinkhorn.project(x, y, reg, sinkhorn.cold(3, 40), (a, b), iterations=20)
    return *potentials, *means, sinkhorn.barycentres(x, y, reg, potentials)


@pytest.mark.parametrize("work", [settled, projected])
@pytest.mark.parametrize("many", [10, 1024])
def test_transport_is_in_float32_in_both_modes(work, many, monkeypatch):
    monkeypatch.setattr(sinkhorn, "_MANY", many)
    jax.clear_caches()
    with jax.enable_x64(False):
        single = work()
    with jax.enable_x64(True):
        double = work()
    jax.clear_caches()
    for one, other in zip(single, double, strict=True):
        assert one.dtype == other.dtype == np.float32
        np.testing.assert_array_equal(one, other)
