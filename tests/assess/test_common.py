"""What was found is kept for the next run: by all that it follows from, and only if it is whole."""

import json
from dataclasses import asdict, dataclass

import pytest

from privtraj.assess import common
from privtraj.assess.common import Finding, kept, kept_file
from privtraj.base.errors import Arg

KEY = {"people": 100, "recipe": {"epsilon": 1.0, "cells": None}}


@dataclass
class Answer:
    worth: float

    def to_dict(self):
        return asdict(self)


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def asked(key=KEY, answer=7.0, kind="plan"):
    made = []
    found = kept(kind, key, lambda values: Answer(**values), lambda: made.append(1) or answer)
    return found, bool(made)


def test_an_answer_is_made_once():
    assert asked(answer=Answer(7.0)) == (Answer(7.0), True)
    assert asked(answer=Answer(8.0)) == (Answer(7.0), False)
    assert asked(answer=Answer(8.0), kind="quality") == (Answer(8.0), True)
    (folder,) = {kept_file(kind, KEY).parent for kind in ("plan", "quality")}
    assert len(list(folder.iterdir())) == 2


def test_no_answer_is_not_kept():
    assert asked(answer=None) == (None, True)
    assert not kept_file("plan", KEY).exists()


@pytest.mark.parametrize("damage", ["{", "[]", '{"key": 3}', '{"answer": {}}', "\udcff"])
def test_a_damaged_file_is_ignored_and_written_again(damage):
    asked(answer=Answer(7.0))
    path = kept_file("plan", KEY)
    whole = path.read_text()
    path.write_bytes(damage.encode(errors="surrogateescape"))
    assert asked(answer=Answer(7.0)) == (Answer(7.0), True)
    assert path.read_text() == whole
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_file_of_another_question_is_not_believed():
    asked(answer=Answer(7.0))
    other = {**KEY, "people": 101}
    kept_file("plan", KEY).rename(kept_file("plan", other))
    assert asked(other, Answer(9.0)) == (Answer(9.0), True)


def test_every_part_of_the_key_the_version_and_the_format_count(monkeypatch):
    keys = [KEY, {**KEY, "people": 101}, {**KEY, "recipe": {"epsilon": 1.0, "cells": 8}}]
    names = [kept_file("plan", key) for key in keys]
    monkeypatch.setattr(common, "__version__", "0.0.0")
    names.append(kept_file("plan", KEY))
    monkeypatch.setattr(common, "FORMAT", common.FORMAT + 1)
    names.append(kept_file("plan", KEY))
    assert len(set(names)) == 5


def test_no_place_for_a_cache_is_no_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert asked(answer=Answer(7.0)) == (Answer(7.0), True)


def test_a_file_holds_the_question_and_the_answer_alone():
    asked(answer=Answer(7.0))
    held = json.loads(kept_file("plan", KEY).read_text())
    assert held == {"key": KEY, "answer": {"worth": 7.0}}


def test_a_finding_in_python_and_as_it_is_typed():
    found = Finding("age", "wrong", ("all are 0",), ("check ", Arg("time_range")), {"share": 1.0})
    assert str(found) == found.sentence == "all are 0: check time_range"
    assert found.typed() == "all are 0: check --time-range"
    assert found.what == "all are 0"
