"""The plan: forecasts by simulation, kept from one run to the next, and honest about too little."""

import dataclasses
import json
from itertools import combinations

import numpy as np
import pytest

import privtraj as pt
from privtraj.assess.optimism import OPTIMISM
from privtraj.assess.planning import planner, standins, trials
from privtraj.assess.planning.forecast import GOOD, Forecast, Level, level_of
from privtraj.assess.planning.question import ENOUGH, LARGEST_WORTH, STAND_INS, Question
from privtraj.privacy.calibration import calibrate_gaussian

QUESTION = Question(6000, 10, 2, 1.0, 1e-5)
FEWER = {"LARGEST_WORTH": 100, "_POPULATION": 1500, "_POINTS": 100, "_PANELS": 3}
TINY = {"times": 2, "features": 1, "epsilon": 1.0}


@pytest.fixture(scope="module", autouse=True)
def small():
    """A coarse yardstick, which is read in no time."""
    with pytest.MonkeyPatch.context() as patch:
        for name, number in FEWER.items():
            patch.setattr(standins, name, number)
        patch.setattr(trials, "RELEASED", 100)
        yield


@pytest.fixture(scope="module")
def quick():
    """Fewer fits for each forecast; the fits are the real ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trials, "_SEEDS", {"counts": (1,), "gradients": (1,)})
        patch.setattr(trials, "_STEPS", {"counts": (-3, 0, 3), "gradients": (0,)})
        patch.setattr(trials, "_MORE_PEOPLE", (4, 64))
        yield


@pytest.fixture(scope="module")
def few(quick):
    return pt.plan(120, features=2, keep=False)


@pytest.fixture(scope="module")
def many(quick):
    return pt.plan(12_000, times=4, features=2, keep=False)


@pytest.fixture
def one_stand_in(monkeypatch, tmp_path):
    """The least forecast there is, an empty cache, and the number of fits so far."""
    monkeypatch.setattr(trials, "STAND_INS", ("three groups",))
    monkeypatch.setattr(trials, "_SEEDS", {"counts": (1,), "gradients": (1,)})
    monkeypatch.setattr(trials, "_STEPS", {"counts": (0,), "gradients": (0,)})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    fits, fit = [], trials.fit

    def counted(question, records, seed):
        fits.append(question)
        return fit(question, records, seed)

    monkeypatch.setattr(trials, "fit", counted)
    return fits


# What a forecast says -------------------------------------------------------------------------


@pytest.mark.slow
def test_more_budget_and_more_people_are_worth_more(few, many):
    for forecast in (few, many):
        assert forecast.epsilons.tolist() == [0.125, 1.0, 8.0]
        # where both reach the most that can be told, chance decides
        assert (np.diff(forecast.worth) >= -0.02 * forecast.worth[:-1]).all()
        assert forecast.worth[-1] > forecast.worth[0]
        assert (forecast.low <= forecast.worth).all()
        assert (forecast.worth <= forecast.high).all()
    assert (many.worth >= few.worth).all()
    assert many.expected.worth > 3 * few.expected.worth


def test_too_few_people_are_warned_of_with_what_would_help(few, many):
    assert few.expected.worth < GOOD <= many.expected.worth
    assert many.warning is None
    assert "few for this wish" not in str(many)
    assert many.to_dict()["weak_guarantee"] == many.question.weak
    assert "WARNING: delta = 1e-5 is large for about 12,000 people" in " ".join(str(many).split())
    assert few.question.weak == []
    assert "WARNING: 120 people are few for this wish" in str(few)
    assert few.remedies.people in (480, 7680)
    assert f"{few.remedies.people:,} people" in " ".join(str(few).split())
    enough = few.epsilons[few.worth >= GOOD]
    assert few.remedies.epsilon == (enough.min() if len(enough) else None)


@pytest.mark.slow
def test_what_would_help_does_help(few):
    more = pt.plan(few.remedies.people, features=2, keep=False)
    assert more.expected.worth >= GOOD


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
    assert many.settings["measure"] == "counts"
    assert 12 <= low <= high <= 64
    assert many.settings["particles"] == [256, 256]


def test_resolution_in_time_is_found_and_told(few, many):
    assert many.settings["slabs"] == [4, 4]
    least, most = few.settings["slabs"]
    assert 2 <= least <= most
    assert "slabs of time" in str(few)
    assert "120 people, one record each, at any time, 2 features" in " ".join(str(few).split())


def test_people_come_at_any_time_unless_times_are_given():
    asked = Question(600, None, 2, 2.0, 1e-5)
    moments = trials.records_of(asked, "one skewed group", 1).moments
    assert len(np.unique(moments)) > 150
    assert len(np.unique(trials.records_of(QUESTION, "one skewed group", 1).moments)) == 10
    np.testing.assert_array_equal(trials.scored_times(asked), trials.READ_AT)
    assert "people are at any time" in str(
        trials.fit(asked, trials.records_of(asked, "one skewed group", 1), 1).certificate
    )


def test_json_and_back(few, many):
    for forecast in (few, many):
        text = json.dumps(forecast.to_dict(), allow_nan=False)
        again = Forecast.from_dict(json.loads(text))
        assert again.to_dict() == forecast.to_dict()
        assert str(again) == str(forecast)


def test_same_question_same_answer(one_stand_in):
    one, other = (pt.plan(120, times=4, features=2, keep=False) for _ in range(2))
    assert one_stand_in
    assert one.to_dict() == other.to_dict()


@pytest.mark.parametrize("measure", list(OPTIMISM))
def test_level_of_fits(measure):
    optimism = OPTIMISM[measure]
    level = level_of([10, 40, 160], measure, 1e4)
    assert level.worth == pytest.approx(40 / optimism.middle)
    assert level.low == pytest.approx(level.worth / optimism.most)
    assert level.high == pytest.approx(level.worth / optimism.least)
    assert not level.or_more
    assert level_of([40], measure, 1e3).worth <= level_of([40], measure, 1e4).worth
    none, some, all_ = (level_of(each, measure, 1e4) for each in ([0, 0], [0, 8], [8, 8]))
    assert none.worth < 1
    assert none < some < all_
    best = level_of([LARGEST_WORTH] * 2, measure, 1e4)
    assert best.or_more
    assert best.high == LARGEST_WORTH


def test_words_for_the_ends_of_the_scale(many):
    def said(worth, more=False):
        curve = tuple(Level(worth, worth, worth, more) for _ in many.curve)
        return " ".join(str(dataclasses.replace(many, curve=curve)).split())

    assert "worse than the raw, unprotected record of a single person" in said(0.3)
    assert "about 400 people or more per time" in said(417, True)
    assert "about 120 people" not in said(123.4)  # no false precision
    assert "worth about 100 people per time (100 to 100 in nine cases of ten)" in said(112.3)


# Kept forecasts -------------------------------------------------------------------------------


@pytest.mark.slow
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


@pytest.mark.parametrize("damage", ["{", "[]", '{"question": 3}', "\udcff"])
def test_a_damaged_file_is_ignored_and_written_again(one_stand_in, damage):
    whole = pt.plan(400, **TINY)
    once = len(one_stand_in)
    path = planner.file_of(whole.question)
    path.write_bytes(damage.encode(errors="surrogateescape"))
    assert pt.plan(400, **TINY).to_dict() == whole.to_dict()
    assert len(one_stand_in) == 2 * once
    assert json.loads(path.read_text()) == whole.to_dict()
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_file_of_another_question_is_not_believed(one_stand_in):
    other = pt.plan(500, **TINY)
    mine = dataclasses.replace(other.question, people=400)
    planner.file_of(other.question).rename(planner.file_of(mine))
    one_stand_in.clear()
    assert pt.plan(400, **TINY).question.people == 400
    assert one_stand_in


def test_no_place_for_a_cache_is_no_error(one_stand_in, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert pt.plan(400, **TINY).expected.worth >= 0


OTHERS = {
    "people": 6001,
    "times": 11,
    "features": 3,
    "epsilon": 1.5,
    "delta": 1e-6,
    "adjacency": "replace-one",
    "measure": "gradients",
    "public_counts": True,
    "records_per_person": 2,
    "settings": (("cells", 8),),
}


def test_every_part_of_the_question_is_in_the_key(monkeypatch):
    assert set(OTHERS) == {field.name for field in dataclasses.fields(Question)}
    other = [dataclasses.replace(QUESTION, **{name: value}) for name, value in OTHERS.items()]
    names = [planner.file_of(question) for question in (QUESTION, *other)]
    monkeypatch.setattr(planner, "__version__", "0.0.0")
    names.append(planner.file_of(QUESTION))
    monkeypatch.setattr(planner, "FORMAT", planner.FORMAT + 1)
    names.append(planner.file_of(QUESTION))
    assert len(set(names)) == len(OTHERS) + 3


# Stand-ins ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STAND_INS)
@pytest.mark.parametrize("features", [1, 2, 5])
def test_stand_ins_are_in_the_box_and_move(name, features):
    moments = np.repeat([0.0, 0.5, 1.0], 400)
    people = standins.people_at(name, moments, features, seed=3)
    assert people.shape == (1200, features)
    assert people.min() >= 0
    assert people.max() <= 1
    assert (people == standins.people_at(name, moments, features, seed=3)).all()
    assert (people != standins.people_at(name, moments, features, seed=4)).any()
    clouds = people.reshape(3, 400, features)
    assert max(pt.metrics.wasserstein2(clouds[0], later) for later in clouds[1:]) > 0.05
    assert np.isin(clouds, [0.0, 1.0]).mean() < 0.02  # hardly anybody at the walls


def test_no_stand_in_is_another():
    assert tuple(standins.CROWDS) == STAND_INS
    crowds = [standins.people_at(name, np.full(300, 0.75), 2, seed=3) for name in STAND_INS]
    for one, other in combinations(crowds, 2):
        assert pt.metrics.wasserstein2(one, other) > 0.05


@pytest.mark.parametrize("n", [5, 30])
def test_real_people_are_worth_themselves(n):
    moments = np.array([0.2, 0.7])
    yardstick = standins.Yardstick.of("one skewed group", moments, 2)
    people = standins.people_at("one skewed group", np.repeat(moments, 8 * n), 2, seed=5)
    clouds = people.reshape(2, 8, n, 2)
    worths = [yardstick.worth(yardstick.error(clouds[:, k])) for k in range(8)]
    assert np.exp(np.log(worths).mean()) == pytest.approx(n, rel=0.4)


def test_people_without_a_place_are_worth_nothing():
    yardstick = standins.Yardstick.of("three groups", np.array([0.5]), 2)
    anywhere = np.random.default_rng(0).random((1, 500, 2))
    assert yardstick.worth(yardstick.error(anywhere)) < 3


# Questions ------------------------------------------------------------------------------------


def test_many_people_are_simulated_by_fewer_with_as_much_noise_each():
    large = dataclasses.replace(QUESTION, people=100_000)
    small = large.simulated()
    assert small.people == ENOUGH["counts"]
    assert small.people * small.epsilon == pytest.approx(large.people * large.epsilon)
    assert QUESTION.simulated() is QUESTION

    large = dataclasses.replace(QUESTION, people=40_000, features=5)
    small = large.simulated()
    assert small.people == ENOUGH["gradients"]
    mu = [calibrate_gaussian(q.epsilon, q.delta, q.adjacency) for q in (small, large)]
    assert small.people * mu[0] == pytest.approx(large.people * mu[1], rel=1e-3)


def test_several_records_per_person_are_paid_for():
    asked = Question(300, 3, 2, 2.0, 1e-5, records_per_person=2)
    records = trials.records_of(asked, "one skewed group", 1)
    assert len(records.moments) == 600
    model = trials.fit(asked, records, 1)
    assert model.certificate.public_inputs["most records of one person"] == 2
    one = Question(600, 3, 2, 2.0, 1e-5)
    alone = trials.fit(one, trials.records_of(one, "one skewed group", 1), 1)
    assert model.diagnostics["people_noise"] > alone.diagnostics["people_noise"]


def test_settings_by_hand_reach_the_fit(one_stand_in):
    forecast = pt.plan(400, **TINY, cells=8, adjacency="replace-one", public_counts=True)
    assert forecast.settings["cells_per_side"] == [8, 8]
    assert "by hand: cells 8" in str(forecast)
    assert "per time public" in str(forecast)


@pytest.mark.slow
def test_many_features_are_forecast_by_gradients(one_stand_in):
    asked = Question(2000, 2, 4, 4.0, 1e-5)
    curve, settings = trials._curve(asked, np.array([4.0]), (1,), trials._Counter(1, None))
    assert curve.shape == (1, 1)
    assert settings["measure"] == "gradients"
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
        ({"cells": 1}, "cells must be between"),
        ({"cell": 8}, "no such setting among cell"),
        ({"seed": 3}, "no such setting among seed"),
    ],
)
def test_bad_questions_are_refused(wrong, said):
    asked = {"people": 6000, "times": 10, "features": 2, **wrong}
    with pytest.raises(pt.InputError, match=said):
        pt.plan(asked.pop("people"), **asked)
