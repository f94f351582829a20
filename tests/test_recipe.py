"""The recipe: every choice of a user about a fit, one object, which nothing loses on its way."""

import json
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

import privtraj as pt
from privtraj import InputError, Recipe, TrajectorySynthesizer

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
    "slabs": "bins",
    "subspace": "off",
    "bandwidth": 0.1,
    "time_coupling": 0.5,
    "diffusivity": 0.02,
    "reference": pt.Brownian(0.3),
    "monotone": {"x0": "rising"},
    "precision": {"x1": 0.5},
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


def test_pull_is_the_old_name_of_time_coupling():
    assert Recipe(pull=0.3) == Recipe(time_coupling=0.3)


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
