"""Several devices give the model that one gives.

Run as a program, this file fits with the devices that it is given, and writes the models' hashes.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from privtraj.data.snapshots import Snapshots
from privtraj.privacy import sums as sums_module
from privtraj.synthesizer import TrajectorySynthesizer

D = 7  # distances are products of matrices beyond six features
MEASURES = {
    "gradients": {"measure": "gradients", "particles": 12, "steps": 4},
    "counts": {"measure": "counts", "cells": 2},
}
SMALL_CHUNKS = sums_module._Layout(16, 4, 512)  # so that these people fill many, unevenly


def fitted():
    """How many devices there are, and the hashes of models of 900 people in four bins."""
    import jax

    rng = np.random.default_rng(0)
    times = rng.integers(0, 4, 900).astype(float)
    points = 0.3 + 0.1 * times[:, None] + 0.08 * rng.standard_normal((900, D))
    people = Snapshots.from_arrays(times, np.clip(points, 0, 1), bounds=[(0, 1)] * D, bins=range(4))
    models = {
        name: TrajectorySynthesizer(4.0, 1e-4, seed=3, **settings).fit(people).sha256
        for name, settings in MEASURES.items()
    }
    return {"devices": jax.device_count(), "models": models}


def found(count, out):
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={count}"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, __file__, str(out)], env=environment, check=True)
    return json.loads(out.read_text())


@pytest.mark.thorough
def test_four_devices_give_the_model_of_one(tmp_path):
    alone = found(1, tmp_path / "one.json")
    assert found(4, tmp_path / "four.json") == alone | {"devices": 4}


if __name__ == "__main__":
    sums_module._layout = lambda: SMALL_CHUNKS
    Path(sys.argv[1]).write_text(json.dumps(fitted()))
