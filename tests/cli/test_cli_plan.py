"""`privtraj plan`: what a user types, what comes back, and what is refused in one sentence."""

import json
import re

import pytest

from privtraj import cli
from privtraj.assess import plan as planner
from privtraj.assess import simulate
from privtraj.cli import prepare as command
from privtraj.cli.console import parser

ASK = ["plan", "--people", "400", "--times", "2", "--features", "1"]

CONFIG = """\
time = "age"
feature = [["height", 40, 210], ["weight", 1, 140], ["pulse", 30, 200]]
time_range = [0, 20]
bins = 12
records_per_person = 2
epsilon = 0.5
delta = 1e-6
adjacency = "replace-one"
measure = "counts"
public_counts = [310, 305, 298]
cells = 8
out = "<still to be filled in>"
"""


@pytest.fixture(autouse=True)
def least(monkeypatch, tmp_path):
    """The least forecast there is, by a coarse yardstick, and an empty cache."""
    monkeypatch.setattr(planner, "STAND_INS", ("groups that exchange people",))
    monkeypatch.setattr(planner, "STEPS", (-1, 0, 1))
    for name, number in {"POPULATION": 500, "POINTS": 50}.items():
        monkeypatch.setattr(simulate, name, number)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "fit.toml"
    path.write_text(CONFIG)
    return str(path)


def asked(*words):
    asked = command.plan.settled(parser(command.plan).parse_args(["plan", *words]))
    return command.forecast_of(vars(asked))


def test_text_json_and_cache(capsys, monkeypatch):
    assert cli.main(ASK) == 0
    text = capsys.readouterr().out
    assert "Forecast for 400 people" in text
    assert "nothing was spent" in text

    monkeypatch.setattr(simulate, "simulate", None)  # all that follows is known already
    assert cli.main([*ASK, "--json", "--epsilon", "1", "--delta", "1e-5"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["command"] == "plan"
    assert [point["epsilon"] for point in found["curve"][::2]] == [0.5, 1, 2]
    assert found["privacy_spent"] == 0
    assert cli.main([*ASK, "--quiet"]) == 0
    shown = capsys.readouterr()
    assert shown.out in text
    assert shown.err == ""


def test_listed_times_are_a_fact_that_no_advice_is_about(capsys):
    """Who has five fixed days cannot have more, nor fewer."""
    assert cli.main(["plan", "--people", "40", "--times", "5", "--features", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "few for this wish" in found["warning"]
    assert not re.search(r"\b(bins?|times|days|windows?)\b", found["warning"])
    assert found["question"]["times"] == 5


def test_without_a_cache_nothing_is_kept(capsys, tmp_path):
    assert cli.main([*ASK, "--no-cache"]) == 0
    assert not (tmp_path / "cache" / "privtraj" / "forecasts").exists()


def test_a_configuration_gives_what_the_command_line_does_not(config):
    assert asked("--people", "6000", "--config", config) == {
        "people": 6000,
        "features": 3,
        "epsilon": 0.5,
        "delta": 1e-6,
        "adjacency": "replace-one",
        "measure": "counts",
        "public_counts": True,
        "records_per_person": 2,
        "cells": 8,
    }
    words = ["--times", "5", "--features", "1", "--epsilon", "2", "--adjacency", "add-remove"]
    found = asked("--people", "6000", "--config", config, *words)
    assert (found["times"], found["features"], found["epsilon"]) == (5, 1, 2.0)
    assert found["adjacency"] == "add-remove"
    assert found["delta"] == 1e-6


def test_times_of_interest_say_nothing_about_when_people_come(tmp_path):
    path = tmp_path / "fit.toml"
    path.write_text('bin_times = [0, 1, 5]\nfeature = [["x", 0, 1]]\n')
    found = asked("--people", "90", "--config", str(path))
    assert (found["people"], found["features"], "times" in found) == (90, 1, False)


def test_an_unfinished_configuration_says_what_is_missing(tmp_path, capsys):
    path = tmp_path / "fit.toml"
    path.write_text('epsilon = "<epsilon>"\nfeature = [["x", 0, 1]]\n')
    words = ["plan", "--people", "90", "--times", "2", "--config", str(path)]
    assert cli.main(words) == 2
    assert "epsilon" in capsys.readouterr().err
    assert cli.main([*words, "--epsilon", "2", "--no-cache"]) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "--people is needed"),
        ("--people 10", "--features is needed"),
        ("--people 3 --times 10 --features 2", "one person per time"),
        ("--people few --times 10 --features 2", "--people must be a whole number"),
        ("--people 60 --times 1 --features 2", "--times must be a whole number"),
        ("--people 60 --times 10 --features 0", "--features must be a whole number"),
        ("--people 60 --times 10 --features 99", "features must be a whole number from 1 to 64"),
        ("--people 60 --times 10 --features 2 --epsilon 0", "epsilon must be a positive"),
        ("--people 60 --times 10 --features 2 --epsilon -1", "epsilon must be a positive"),
        ("--people 60 --times 10 --features 2 --delta 1", "delta"),
        ("--people 60 --times 10 --features 2 --measure some", "--measure"),
        ("--people 60 --times 3 --features 2 --records-per-person 4", "--records-per-person must"),
        ("--people 60 --times 3 --features 2 --config none.toml", "there is no file"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_two(words, said, capsys):
    assert cli.main(["plan", *words.split()]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert said in shown.err
    assert shown.err.startswith("privtraj: error: ")
    assert shown.err.count("\n") == 1
