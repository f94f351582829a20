"""Model files that version 0.2 wrote: they load, their certificates verify, and they draw the same
people.

Each was fitted with a seed to simulated people (so none is private), by one measure or with one
capability. `MEANS` are those of 20 people at five times with seed 1, as version 0.2 drew them.
"""

from pathlib import Path

import numpy as np
import pytest

import privtraj as pt

FILES = Path(__file__).parent / "version_0_2"
MEANS = {
    "counts": 0.573636,
    "gradients": 0.536144,
    "public_counts": 0.546696,
    "tables": 14.969577,
    "growth": 0.541457,
    "memory": 0.571209,
    "domain": 0.536765,
}


def test_every_file_is_tried():
    assert {path.stem for path in FILES.glob("*.privtraj")} == set(MEANS)


@pytest.mark.parametrize("name", MEANS)
def test_a_file_of_version_0_2_loads_verifies_and_draws_the_same_people(name, tmp_path):
    model = pt.load(FILES / f"{name}.privtraj")
    assert model.recipe is None
    assert model.verify() <= model.certificate.target_epsilon
    times = np.linspace(*model.numeric_times[[0, -1]], 5)
    people = model.sample(20, times=times, seed=1)
    assert np.nanmean(np.asarray(people.values, float)) == pytest.approx(MEANS[name], abs=1e-5)
    model.save(tmp_path / "again.privtraj", not_private=True)
    assert pt.load(tmp_path / "again.privtraj").sha256 == model.sha256
