"""What every registered way to pay promises: a plan within its budget, of releases it names."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privtraj as pt
from privtraj.measures.base import counts_event, slack_reserve
from privtraj.measures.persistence import persistence_event
from privtraj.measures.registry import NAMES, find
from privtraj.privacy import noise
from privtraj.privacy.events import GaussianSum, Person
from privtraj.privacy.ledger import Ledger
from privtraj.recipe import Recipe

SETTINGS = [
    {},
    {"windows": "bins"},
    {"windows": 3, "adjacency": "replace-one"},
    {"epsilon": 0.05, "persistence": "off"},
]


def snapshots(features, records=1):
    rng = np.random.default_rng(0)
    whose = {"person": np.arange(60) // records, "records_per_person": records}
    return pt.Snapshots.from_arrays(
        np.tile(np.arange(5.0), 12), rng.random((60, features)), bounds=[(0, 1)] * features,
        bins=np.arange(5.0), **(whose if records > 1 else {}),
    )  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize(("features", "records"), [(1, 1), (2, 3), (7, 1)])
def test_a_plan_fits_its_budget_and_has_no_release_without_a_name(
    name, settings, features, records
):
    measure, public = find(name), snapshots(features, records)
    recipe = Recipe(measure=name, **settings)
    measure.refuses(public, recipe)
    plan = measure.plan(public, recipe)
    most = measure.most_releases(20)
    ledger = Ledger(recipe.epsilon, recipe.delta, recipe.adjacency)
    for planned in plan.releases:
        assert planned.times <= most[planned.event.name]
        event = planned.event  # of shared ones the bound: all of them together
        if planned.shared and isinstance(event, GaussianSum):  # and of all slack that they may have
            event = replace(event, slack=slack_reserve(recipe.delta))
        ledger.spend(event)
    assert sum(planned.shared for planned in plan.releases) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_measure_says_what_it_is_and_whether_it_needs_a_delta(name):
    measure = find(name)
    assert measure.name == name
    assert measure.words
    if measure.needs_delta:
        with pytest.raises(pt.InputError, match="need a delta above 0"):
            pt.TrajectorySynthesizer(1.0, 0.0, measure=name).fit(snapshots(2))
    else:
        assert measure.plan(snapshots(2), Recipe(1.0, 0.0, measure=name)).releases


def test_a_fit_by_counts_loads_no_heavy_library(tmp_path):
    """JAX, POT, pandas and whatever draws take longer to load than the fit takes."""
    rng, path = np.random.default_rng(0), str(tmp_path / "people.parquet")
    pq.write_table(pa.table({"id": np.arange(500)} | {k: rng.random(500) for k in "txy"}), path)
    code = """
import sys
import privtraj as pt
people = pt.Snapshots.from_table(
    sys.argv[1], time="t", person="id", bounds={"x": (0, 1), "y": (0, 1)}, time_range=(0, 1)
)
pt.TrajectorySynthesizer(1.0, 1e-5, seed=0).fit(people).sample(5).to_arrow()
print(*{"jax", "ot", "pandas", "matplotlib", "scipy.stats"} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code, path], capture_output=True)
    assert done.stdout.decode().split() == [], done.stderr.decode()


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("records", [1, 3])
def test_counts_cost_their_share_of_epsilon_whoever_is_protected(adjacency, records):
    event = counts_event(Recipe(2.0, adjacency=adjacency), 0.1, "some", Person(records))
    assert event.cost(adjacency, 1)["epsilon"] == pytest.approx(0.2)
    assert event.person == Person(records)


def test_noise_is_within_what_can_be_drawn_whatever_the_budget():
    least, most = noise.EPSILON_RANGE
    assert counts_event(Recipe(100.0), 0.9, "some", Person()).epsilon == most
    assert counts_event(Recipe(0.005), 0.01, "some", Person()).epsilon == least
    plan = find("counts").plan(snapshots(2), Recipe(100.0, windows="bins"))
    assert plan.releases[-1].event.epsilon == most
    assert persistence_event(1e6, "add-remove", Person(2), 1).epsilon == most


def test_the_largest_epsilon_is_spent_on_as_little_noise_as_there_is():
    recipe = {"measure": "counts", "windows": "bins", "cells": 4, "particles": 8}
    model = pt.TrajectorySynthesizer(100.0, 0.0, seed=0, **recipe).fit(snapshots(1))
    assert model.certificate.ledger[-1]["epsilon"] == noise.EPSILON_RANGE[1]
