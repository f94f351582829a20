"""The plan: forecasts by simulation, kept from one run to the next, and honest about too little."""

import dataclasses
import json
from itertools import combinations

import numpy as np
import pytest

import privtraj as pt
from privtraj import cli
from privtraj.assess import common, plan, simulate
from privtraj.assess.common import STAND_INS, UNKNOWN, Estimate
from privtraj.assess.plan import GOOD, Forecast, Question
from privtraj.assess.simulate import ENOUGH, StandIn, Yardstick, fewer
from privtraj.columns.declared import declared_columns
from privtraj.columns.kinds import Axes
from privtraj.measures.registry import find
from privtraj.metrics.people import MOST_TOLD
from privtraj.privacy.ledger import calibrate_gaussian
from privtraj.recipe import Recipe

BUDGET = Recipe(1.0, 1e-5)
COARSE = {"MOST_TOLD": 100, "POPULATION": 1500, "POINTS": 100, "PANELS": 3}
TINY = {"times": 2, "features": 1, "epsilon": 1.0}
COLUMNS = {"sex": pt.Category(["F", "M"], fixed=True), "code": list("abcdef"), "smoker": bool}


@pytest.fixture(scope="module", autouse=True)
def small():
    """A coarse yardstick, which is read in no time."""
    with pytest.MonkeyPatch.context() as patch:
        for name, number in COARSE.items():
            patch.setattr(simulate, name, number)
        yield


@pytest.fixture(scope="module")
def quick():
    """Fewer fits for each forecast; the fits are the real ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "STAND_INS", ("one group that jumps", "groups that exchange people"))
        patch.setattr(plan, "STEPS", (-3, 0, 3))
        yield


@pytest.fixture(scope="module")
def few(quick):
    return pt.plan(120, features=2, keep=False)


@pytest.fixture(scope="module")
def many(quick):
    return pt.plan(12_000, times=4, features=2, keep=False)


@pytest.fixture
def one_stand_in(monkeypatch, tmp_path):
    """The least forecast there is, an empty cache, and the fits so far."""
    monkeypatch.setattr(plan, "STAND_INS", ("groups that exchange people",))
    monkeypatch.setattr(plan, "STEPS", (0,))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    fits, fit = [], simulate.simulate

    def counted(recipe, *args, **kwargs):
        fits.append(recipe)
        return fit(recipe, *args, **kwargs)

    monkeypatch.setattr(simulate, "simulate", counted)
    return fits


# What a forecast says -------------------------------------------------------------------------


@pytest.mark.thorough
def test_more_budget_and_more_people_are_worth_more(few, quick):
    # of 12,000 people every budget is worth the most that this yardstick tells
    many = pt.plan(6_000, times=4, features=2, keep=False)
    for forecast in (few, many):
        np.testing.assert_allclose(forecast.epsilons, 2.0 ** np.array([-3, -1.5, 0, 1.5, 3]))
        # where both reach the most that can be told, chance decides
        assert (np.diff(forecast.worth) >= -0.02 * forecast.worth[:-1]).all()
        assert forecast.worth[-1] > forecast.worth[0]
        assert all(level.low <= level.worth <= level.high for level in forecast.curve)
    assert (many.worth >= few.worth).all()
    assert many.expected.worth > 3 * few.expected.worth


@pytest.mark.thorough
def test_too_few_people_are_warned_of_with_what_would_help(few, many):
    assert few.expected.worth < GOOD <= many.expected.worth
    assert many.warning is None
    assert "few for this wish" not in str(many)
    assert many.to_dict()["weak_guarantee"] == many.question.weak
    assert "WARNING: delta = 1e-5 is large for about 12,000 people" in " ".join(str(many).split())
    assert few.question.weak == []
    assert "WARNING: 120 people are few for this wish" in str(few)
    enough = few.epsilons[few.worth >= GOOD]
    helps = f"epsilon {enough.min():.3g}" if len(enough) else "no epsilon that was tried"
    assert helps in few.warning


def test_text_says_what_a_steward_needs_to_know(many):
    text = " ".join(str(many).split())
    assert "12,000 people, one record each, at 4 times (3,000 per time), 2 features" in text
    assert "epsilon 1, delta 1e-5, add-remove, numbers of people per time private" in text
    assert "as well as by the raw, unprotected records of" in text
    assert "no data were read and nothing was spent" in text
    assert "private counts" in text
    marked = [line for line in str(many).splitlines() if line.startswith("  >")]
    assert len(marked) == 1
    assert marked[0].split()[1] == "1"


def test_settings_are_those_of_the_fits(many):
    low, high = many.settings["cells_per_side"]
    assert many.measure == "counts"
    assert 12 <= low <= high <= 64
    assert many.settings["particles"] == [256, 256]


def test_resolution_in_time_is_found_and_told(few, many):
    assert many.settings["windows"] == [4, 4]
    least, most = few.settings["windows"]
    assert 2 <= least <= most
    assert "windows of time" in str(few)
    assert "120 people, one record each, at any time, 2 features" in " ".join(str(few).split())


def test_people_come_at_any_time_unless_times_are_given():
    moments, _ = StandIn("one skewed group", 2).recorded(600, 1)
    assert len(np.unique(moments)) > 150
    assert len(np.unique(StandIn("one skewed group", 2, 10).recorded(600, 1)[0])) == 10
    asked = Question(600, None, 2, BUDGET)
    np.testing.assert_array_equal(plan.scored_times(asked), plan.READ_AT)
    scored = plan.scored_times(dataclasses.replace(asked, times=10))
    np.testing.assert_allclose(scored * 9, [2, 5, 8])


def test_json_and_back(few, many):
    for forecast in (few, many):
        text = json.dumps(forecast.to_dict(), allow_nan=False)
        again = Forecast.from_dict(json.loads(text), forecast.question)
        assert again.to_dict() == forecast.to_dict()
        assert str(again) == str(forecast)


def test_same_question_same_answer(one_stand_in):
    one, other = (pt.plan(120, times=4, features=2, keep=False) for _ in range(2))
    assert one_stand_in
    assert one.to_dict() == other.to_dict()


def test_an_estimate_is_the_middle_of_what_is_equally_likely():
    level = Estimate.of([10, 40, 160])
    assert level.worth == pytest.approx(40)
    assert level.high / level.worth == pytest.approx(level.worth / level.low)
    sure = Estimate.of([40, 40])
    assert sure.high / 40 == pytest.approx(np.exp(1.64 * UNKNOWN))
    assert sure.high < level.high
    assert not level.or_more
    none, some, all_ = (Estimate.of(each) for each in ([0, 0], [0, 8], [8, 8]))
    assert none.worth < 1
    assert none.worth < some.worth < all_.worth
    best = Estimate.of([MOST_TOLD] * 2)
    assert best.or_more
    assert best.high == MOST_TOLD


def test_words_for_the_ends_of_the_scale(many):
    def said(worth, more=False):
        curve = tuple(Estimate(worth, worth, worth, more) for _ in many.curve)
        return " ".join(str(dataclasses.replace(many, curve=curve)).split())

    assert "worse than the raw, unprotected record of a single person" in said(0.3)
    assert "about 400 people or more per time" in said(417, True)
    assert "about 120 people" not in said(123.4)  # no false precision
    assert "worth about 100 people per time (100 to 100 in nine cases of ten)" in said(112.3)


# Kept forecasts -------------------------------------------------------------------------------


def test_a_kept_forecast_needs_no_fit(one_stand_in):
    first = pt.plan(400, **TINY)
    once = len(one_stand_in)
    assert once >= 1
    again = pt.plan(400, **TINY)
    assert pt.plan(np.int64(400), **{**TINY, "epsilon": 1}).to_dict() == first.to_dict()
    assert len(one_stand_in) == once
    assert again.to_dict() == first.to_dict()
    assert str(again) == str(first)
    pt.plan(400, **TINY, keep=False)
    assert len(one_stand_in) == 2 * once


def test_every_part_of_the_question_is_in_the_key():
    asked = {"people": 6000, "features": 3, "times": 10, "adjacency": "replace-one"}
    others = (
        {"people": 6001},
        {"features": 2},
        {"times": None},
        {"adjacency": "add-remove"},
        {"epsilon": 1.5},
        {"delta": 1e-6},
        {"measure": "gradients"},
        {"public_counts": True},
        {"records_per_person": 2},
        {"cells": 8},
    )
    keys = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "kept", lambda kind, key, *_: keys.append(key) or "kept")
        for changes in ({}, *others):
            whole = {**asked, **changes}
            assert pt.plan(whole.pop("people"), **whole) == "kept"
    assert len({str(common.kept_file("plan", key)) for key in keys}) == len(others) + 1


# Stand-ins ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STAND_INS)
@pytest.mark.parametrize("features", [1, 2, 5])
def test_stand_ins_are_in_the_box_and_move(name, features):
    moments = np.repeat([0.0, 0.5, 1.0], 400)
    people = StandIn(name, features).places(moments, seed=3)
    assert people.shape == (1200, features)
    assert people.min() >= 0
    assert people.max() <= 1
    assert (people == StandIn(name, features).places(moments, seed=3)).all()
    assert (people != StandIn(name, features).places(moments, seed=4)).any()
    clouds = people.reshape(3, 400, features)
    assert max(pt.metrics.wasserstein2(clouds[0], later) for later in clouds[1:]) > 0.02
    assert np.isin(clouds, [0.0, 1.0]).mean() < 0.02  # hardly anybody at the walls


def test_no_stand_in_is_another():
    crowds = [StandIn(name, 2).places(np.full(300, 0.75), seed=3) for name in STAND_INS]
    for one, other in combinations(crowds, 2):
        assert pt.metrics.wasserstein2(one, other) > 0.05


@pytest.mark.parametrize("n", [5, 30])
def test_real_people_are_worth_themselves(n):
    moments = np.array([0.2, 0.7])
    crowd = StandIn("one skewed group", 2)
    yardstick = Yardstick.of(crowd, moments)
    people = crowd.places(np.repeat(moments, 8 * n), seed=5)
    clouds = people.reshape(2, 8, n, 2)
    worths = [yardstick.worth(yardstick.error(clouds[:, k])) for k in range(8)]
    assert np.exp(np.log(worths).mean()) == pytest.approx(n, rel=0.4)


def test_people_without_a_place_are_worth_nothing():
    yardstick = Yardstick.of(StandIn("groups that exchange people", 2), np.array([0.5]))
    anywhere = np.random.default_rng(0).random((1, 500, 2))
    assert yardstick.worth(yardstick.error(anywhere)) < 3


# Questions ------------------------------------------------------------------------------------


def test_many_people_are_simulated_by_fewer_with_as_much_noise_each():
    assert fewer(BUDGET, find("counts"), 6000, 1) == (BUDGET, 6000)
    recipe, people = fewer(BUDGET, find("counts"), 50_000, 2)
    assert 2 * people == ENOUGH[True]
    assert people * recipe.epsilon == pytest.approx(50_000 * BUDGET.epsilon)
    recipe, people = fewer(BUDGET, find("gradients"), 40_000, 1)
    assert people == ENOUGH[False]
    mu = [calibrate_gaussian(each.epsilon, each.delta, "add-remove") for each in (recipe, BUDGET)]
    assert people * mu[0] == pytest.approx(40_000 * mu[1], rel=1e-3)


def test_several_records_per_person_are_paid_for():
    recipe = Recipe(2.0, 1e-5, cells=4)
    crowds = [StandIn("one skewed group", 2, 3, each) for each in (2, 1)]
    fits = [
        simulate.simulate(recipe, crowd, 600 // crowd.records_per_person, seed=1)
        for crowd in crowds
    ]
    assert fits[0].certificate.public_inputs["most records of one person"] == 2
    noises = [model.diagnostics["people_noise"] for model in fits]
    assert noises[0] > noises[1]  # of what is left beside persistence


def test_a_simulated_fit_has_the_whole_recipe_and_the_counts_of_its_people():
    recipe = Recipe(2.0, 1e-5, adjacency="replace-one", cells=5, count_share=0.1)
    crowd, times = StandIn("groups that exchange people", 2, 4), np.array([0.0, 0.5, 1.0])
    fit = simulate.simulate(recipe, crowd, 400, seed=3, public_counts=True)
    assert simulate.drawn(fit, times, 7, 3).shape == (7, 3, 2)
    assert fit.recipe == recipe.again(seed=3, public_counts=[100] * 4)


def test_settings_by_hand_reach_the_fit(one_stand_in):
    forecast = pt.plan(400, **TINY, cells=8, adjacency="replace-one", public_counts=True)
    assert forecast.settings["cells_per_side"] == [8, 8]
    assert "by hand: cells 8" in str(forecast)
    assert "per time public" in str(forecast)


@pytest.mark.thorough
def test_many_features_are_forecast_by_gradients(one_stand_in):
    worths, settings = plan.worth_over(Question(2000, 2, 4, Recipe(4.0)), np.array([4.0]))
    assert worths.shape == (1, 1)
    assert settings["steps"][0] > 0
    assert settings["cells_per_side"] == [0, 0]


def test_progress_is_told_to_the_end(one_stand_in):
    told = []
    pt.plan(400, **TINY, keep=False, progress=lambda done, total: told.append((done, total)))
    assert told[0][0] == 0
    assert [done for done, _ in told] == list(range(len(told)))
    assert told[-1][0] == told[-1][1]


def test_a_forecast_can_be_asked_for_by_its_name():
    assert pt.forecast is pt.plan


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"people": 5}, "people is 5 and times is 10"),
        ({"people": 1}, "people must be a whole number"),
        ({"people": 6000.5}, "people must be a whole number"),
        ({"people": True}, "people must be a whole number"),
        ({"times": 1}, "times must be a whole number from 2"),
        ({"features": 0}, "features must be a whole number from 1"),
        ({"features": 1000}, "features must be a whole number from 1"),
        ({"epsilon": 0}, "epsilon must be a positive"),
        ({"epsilon": float("nan")}, "epsilon must be a positive"),
        ({"epsilon": 1e-3}, "epsilon must be at least"),
        ({"delta": 1.0}, "delta"),
        ({"adjacency": "other"}, "adjacency"),
        ({"measure": "guess"}, "measure must be"),
        ({"measure": "gradients", "delta": 0}, "gradients need a delta"),
        ({"records_per_person": 11}, "records_per_person must not exceed times"),
        ({"cells": 1}, "cells must be a whole number"),
        ({"cell": 8}, "no such setting among cell"),
        ({"seed": 3}, "no such setting among seed"),
    ],
)
def test_bad_questions_are_refused(wrong, said):
    asked = {"people": 6000, "times": 10, "features": 2, **wrong}
    with pytest.raises(pt.InputError, match=said):
        pt.plan(asked.pop("people"), **asked)


# Mixed columns --------------------------------------------------------------------------------


def test_a_plan_of_categories_says_the_measure_and_why():
    made = pt.plan(6000, features=3, columns=COLUMNS)
    assert made.curve == ()
    assert made.expected is None
    assert [one["values"] for one in made.kept] == [2, 6, 2]
    synthesizer = pt.TrajectorySynthesizer(1.0, 1e-5)
    numbers = {f"x{k}": (0, 1) for k in range(3)}
    axes = Axes.of(declared_columns(None, None, columns=numbers | COLUMNS))
    assert made.measure == synthesizer.measure_for(axes).name == "tables"
    text = str(made)
    assert "private tables, because there are 3 categories among the columns" in text
    assert "3 numbers and 3 categories of 10 values together" in text
    assert "not promised" in text
    assert "worth" not in text


def test_the_reason_is_the_one_that_decides():
    made = pt.plan(500, columns=COLUMNS, measure="tables")
    assert (made.measure, made.reason) == ("tables", "you set it by hand")
    for refused in ({"measure": "counts"}, {"delta": 0.0}):
        with pytest.raises(pt.InputError, match="of numbers alone"):
            pt.plan(500, columns=COLUMNS, **refused)


def test_twice_the_noise_needs_twice_the_people():
    made = pt.plan(500, columns=COLUMNS, epsilon=1.0, delta=1e-5)
    less = pt.plan(500, columns=COLUMNS, epsilon=1.0, delta=1e-5, adjacency="replace-one")
    for one, other in zip(made.kept, less.kept, strict=True):
        assert other["fewest_for_share"] == pytest.approx(2 * one["fewest_for_share"], rel=0.02)


def test_many_values_of_few_people_are_warned_of():
    assert pt.plan(6000, columns=COLUMNS).warning is None
    many = {"code": [f"c{k}" for k in range(200)]}
    made = pt.plan(100, columns=many, epsilon=0.1)
    assert "100 people are few for these values" in made.warning
    assert "lose the 200 values of 'code'" in made.warning
    assert "WARNING" in str(made)


@pytest.mark.parametrize(("people", "epsilon"), [(8000, 0.1), (60, 1)])
def test_hopeless_budgets_are_said_value_by_value(people, epsilon):
    columns = {"sex": ["F", "M"], "code": [f"c{k}" for k in range(30)]}
    made = pt.plan(people, features=4, columns=columns, epsilon=epsilon)
    assert [one["lost"] for one in made.kept][1]
    text = " ".join(str(made).split())
    assert "code 30" in text
    assert "expect to lose" in text
    enough = pt.plan(people, features=4, columns=columns, epsilon=8 * epsilon)
    for one, other in zip(made.kept, enough.kept, strict=True):
        assert other["fewest_for_means"] < one["fewest_for_means"]


def test_columns_of_numbers_are_simulated_as_features_are(monkeypatch):
    asked = []
    monkeypatch.setattr(plan, "kept", lambda kind, key, *_: asked.append(key) or "kept")
    both = pt.plan(100, features=1, columns={"y": (0, 1), "k": pt.Integer(0, 5)})
    assert both == "kept"
    assert pt.plan(100, features=3) == "kept"
    assert asked[0] == asked[1]
    gaps = pt.plan(100, columns={"y": pt.Number(0, 1, missing=True)})
    assert gaps.curve == ()
    assert gaps.reason.startswith("some numbers may be missing")


def test_the_command_takes_columns_and_configurations(capsys, tmp_path):
    words = ["--people", "6000", "--column", "sex", "category", "values=F,M", "fixed"]
    assert cli.main(["plan", *words, "--features", "2"]) == 0
    text = capsys.readouterr().out
    assert "2 numbers and 1 category of 2 values together" in text
    config = tmp_path / "fit.toml"
    config.write_text(
        'feature = [["height", 40, 210]]\nepsilon = 0.5\ndelta = 1e-6\n'
        'columns.sex = { kind = "category", values = ["F", "M"], fixed = true }\n'
    )
    assert cli.main(["plan", "--people", "6000", "--config", str(config), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (len(told["columns"]), len(told["kept"]), told["privacy_spent"]) == (2, 1, 0)
    assert told["question"]["epsilon"] == 0.5
