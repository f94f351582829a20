"""The recipe: every choice of a user about a fit, one object, which nothing loses on its way."""

import json
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest

import privtraj as pt
from privtraj import InputError, Recipe, TrajectorySynthesizer
from privtraj.assess.quality import estimated_quality, recipe_of, refitted

CHANGED = {
    "epsilon": 2.0,
    "delta": 1e-6,
    "adjacency": "replace-one",
    "measure": "counts",
    "seed": 7,
    "public_counts": (30.0, 40.0, 50.0),
    "count_share": 0.1,
    "particles": 24,
    "steps": 6,
    "cells": 4,
    "windows": "bins",
    "subspace": "off",
    "bandwidth": 0.1,
    "time_coupling": 0.5,
    "diffusivity": 0.02,
    "reference": pt.Brownian(0.3),
    "monotone": {"x0": "rising"},
    "precision": {"x1": 0.5},
    "ageing": ["x0"],
    "constant": {"site": "A"},
    "zone": {"time": "Europe/Berlin"},
    "persistence": "off",
    "growth": pt.Growth(0.1, turnover=0.2),
}
"""A value of every setting that is not its default: a new setting needs its line here."""


def test_every_setting_has_a_changed_value():
    assert set(CHANGED) == {each.name for each in fields(Recipe)}
    assert all(CHANGED[each.name] != each.default for each in fields(Recipe))


@pytest.mark.parametrize("name", CHANGED)
def test_again_changes_one_setting_and_keeps_all_others(name):
    recipe = Recipe(**CHANGED)
    default = {each.name: each.default for each in fields(Recipe)}[name]
    other = recipe.again(**{name: default})
    assert other != recipe
    assert getattr(other, name) == default
    assert other.again(**{name: CHANGED[name]}) == recipe


def test_a_synthesizer_is_its_recipe():
    recipe = Recipe(**CHANGED)
    synthesizer = TrajectorySynthesizer.of(recipe)
    assert synthesizer == TrajectorySynthesizer(**CHANGED)
    assert synthesizer.recipe == recipe
    assert type(synthesizer.recipe) is Recipe
    assert type(synthesizer.again(seed=1)) is TrajectorySynthesizer
    with pytest.raises(FrozenInstanceError):
        synthesizer.epsilon = 3.0


def test_a_recipe_shows_what_was_chosen():
    assert repr(Recipe(2.0, cells=4)) == "Recipe(epsilon=2.0, delta=1e-05, cells=4)"
    assert "public_counts" in repr(Recipe(public_counts=np.ones(3)))


def test_a_recipe_comes_back_from_json():
    recipe = Recipe(**CHANGED)
    again = Recipe.from_dict(json.loads(json.dumps(recipe.to_dict())))
    assert again.again(public_counts=CHANGED["public_counts"]) == recipe
    assert again.public_counts == [30.0, 40.0, 50.0]
    assert Recipe.from_dict(Recipe().to_dict()) == Recipe()


def test_numbers_of_numpy_and_tables_are_written_as_plain_ones():
    recipe = Recipe(
        np.float64(2), public_counts=np.ones(3), adjacency="replace-one", monotone=("x0",),
        growth={0.0: 1.0, 9.0: 2.0},
    )  # fmt: skip
    written = json.loads(json.dumps(recipe.to_dict()))
    again = Recipe.from_dict(written)
    assert again.to_dict() == written
    assert again.growth == pt.Growth({0.0: 1.0, 9.0: 2.0})
    assert again.monotone == ["x0"]


@pytest.mark.parametrize(
    "made",
    [Recipe(growth=lambda x, t: x), Recipe(reference=pt.Drift(lambda x, t: x))],
    ids=["growth", "reference"],
)
def test_a_function_is_not_written(made):
    assert not made.can_be_written
    with pytest.raises(InputError, match="function"):
        made.to_dict()


@pytest.mark.parametrize(
    "values",
    [
        None,
        [],
        {"epsilonn": 1},
        {"epsilon": -1},
        {"epsilon": "1"},
        {"reference": {"kind": "no"}},
        {"growth": {"size": 1}},
        {"particles": 2.5},
    ],
)
def test_what_is_no_recipe_is_refused(values):
    with pytest.raises(InputError):
        Recipe.from_dict(values) if values != [] else Recipe.from_dict([1])


# Fits made once more --------------------------------------------------------------------------


def crowd(moments, seed):
    """(n, 2) of two narrow groups that part."""
    rng = np.random.default_rng(seed)
    side = rng.choice([-1.0, 1.0], len(moments), p=[0.3, 0.7]) * (0.05 + 0.25 * moments)
    noise = 0.05 * rng.standard_normal((len(moments), 2))
    return np.clip(0.5 + np.column_stack([side, side / 2]) + noise, 0, 1)


def people(n=240, bins=3):
    moments = np.linspace(0, 1, n)
    return pt.Snapshots.from_arrays(
        moments, crowd(moments, 1), bounds=[(0, 1)] * 2, bins=bins, time_range=(0, 1)
    )


FITTED = (
    {name: CHANGED[name] for name in CHANGED if name not in ("diffusivity", "steps")}
    | {"monotone": {"x1": "rising"}, "precision": {"x2": 0.5}, "public_counts": (80.0,) * 3}
    | {"ageing": ["x2"], "constant": {"site": "A"}, "zone": {"time": "Europe/Berlin"}},
    {"measure": "gradients", "steps": 4, "particles": 8, "diffusivity": 0.02, "seed": 1},
)
"""Recipes that change every setting between them."""


def test_the_fitted_recipes_change_every_setting():
    assert set().union(*FITTED) == {each.name for each in fields(Recipe)}


@pytest.mark.parametrize(
    "chosen",
    [FITTED[0], pytest.param(FITTED[1], marks=pytest.mark.slow)],
    ids=["counts", "gradients"],
)
def test_a_refit_has_every_setting_of_the_fit(chosen, tmp_path):
    model = TrajectorySynthesizer(**chosen).fit(people())
    assert model.recipe == Recipe(**chosen)
    model.save(tmp_path / "m.privtraj", not_private=True)
    loaded = pt.load(tmp_path / "m.privtraj")
    loaded.verify()
    assert loaded.recipe.to_dict() == model.recipe.to_dict()
    again = refitted(loaded, 5)[0].recipe
    for name in (each.name for each in fields(Recipe)):
        if name not in ("seed", "reference", "public_counts"):  # those of the refit itself
            assert getattr(again, name) == getattr(loaded.recipe, name), name
    assert (again.public_counts is None) == (model.recipe.public_counts is None)
    assert again.reference == model.reference


def test_the_recipe_is_part_of_what_is_hashed_and_verified():
    model = TrajectorySynthesizer(2.0, 1e-5, cells=4, seed=1).fit(people())
    assert replace(model, recipe=None).sha256 != model.sha256
    other = replace(model, recipe=model.recipe.again(epsilon=1.0)).sealed()
    with pytest.raises(InputError, match="recipe has another guarantee"):
        other.verify()
    silent = replace(model, recipe=None).sealed()  # as files of version 0.2 are
    silent.verify()
    assert recipe_of(silent).epsilon == 2.0
    assert recipe_of(silent).measure == "counts"


def test_a_function_stays_out_of_the_file_and_its_hash(tmp_path):
    model = TrajectorySynthesizer(2.0, seed=1, cells=4, reference=pt.Drift(lambda x, t: 0 * x)).fit(
        people()
    )
    assert model.recipe.reference is not None
    plain = model.with_reference(pt.Brownian(0.1))
    plain.save(tmp_path / "m.privtraj", not_private=True)
    assert pt.load(tmp_path / "m.privtraj").recipe is None


@pytest.mark.thorough
@pytest.mark.slow
def test_cells_set_by_hand_are_worth_what_they_are():
    """Two cells a side cannot tell where people are, however large the budget: as files of 0.2
    were refitted with cells of their own choice, this was said to be worth 251 people."""
    model = TrajectorySynthesizer(2.0, 1e-5, cells=2, seed=1).fit(people(3000, None))
    times = (0.125, 0.375, 0.625, 0.875)
    truth = [crowd(np.full(4000, t), 9) for t in times]
    drawn = model.sample(500, times=times, seed=2).values.swapaxes(0, 1)
    assert pt.metrics.worth(drawn, truth) < 15
    said = estimated_quality(model, refits=1).worth
    assert said.low < 15
    assert said.worth < 60
