"""Sorted runs of hashes: they know what a plain list of all people and batches knows."""

import os
import sqlite3
from collections import Counter, defaultdict

import numpy as np
import pytest
from test_returning_people import House, named

from killing import killed_at
from privtraj.base.errors import InputError
from privtraj.stream import runs
from privtraj.stream.people import People

pytestmark = pytest.mark.usefixtures("fast")


@pytest.fixture
def db():
    with sqlite3.connect(":memory:", isolation_level=None) as one:
        one.executescript(runs.TABLES)
        yield one
    one.close()


def drawn(rng, many):
    """Hashes of which many have a head, a tail or the zeros at their end in common."""
    bytes_of = rng.integers(0, 3, (many, 16), dtype=np.uint8)
    bytes_of[:, 4:14] = 0
    bytes_of[:, :2] = 7
    return [one.tobytes() for one in bytes_of]


def note(db, hashes, batch):
    """A batch, as `People` notes it."""
    db.execute("DELETE FROM coming")
    for k in range(0, len(hashes), 5):  # in blocks, some people in two of them
        runs.bring(db, hashes[max(k - 1, 0) : k + 5])
    new, came = runs.begin(db), []
    for part, people in runs.coming(db):
        runs.put(db, new, part, people, batch)
        came += runs.whole(people)
    runs.merge(db)
    assert sorted(came) == sorted(set(hashes))


def batches_of(db, hashes):
    found = defaultdict(list)
    db.execute("DELETE FROM coming")
    runs.bring(db, hashes)
    for part, people in runs.coming(db):
        for index, batch in zip(*runs.known(db, part, people), strict=True):
            found[runs.whole(people)[index]].append(int(batch))
    return {one: sorted(some) for one, some in found.items()}


def test_runs_know_who_was_in_which_batch(db):
    rng, truth = np.random.default_rng(0), defaultdict(list)
    for batch in range(40):
        hashes = drawn(rng, int(rng.choice([0, 1, 20, 150])))
        note(db, hashes, batch)
        for one in set(hashes):
            truth[one].append(batch)
        asked = drawn(rng, 60)
        assert batches_of(db, asked) == {one: truth[one] for one in asked if one in truth}
        several = sum(len(some) > 1 for some in truth.values())
        assert runs.counted(db) == (len(truth), several)


def test_few_runs_of_each_size_and_everybody_is_written_rarely(db):
    """So a batch costs the time of its own people, and of the bytes that are read of others."""
    rng, most, written = np.random.default_rng(0), 0, 0
    for batch in range(100):
        before = {number for (number,) in db.execute("SELECT number FROM run")}
        note(db, [rng.bytes(16) for _ in range(64)], batch)
        sizes = dict(db.execute("SELECT number, people FROM run"))
        written += sum(size for number, size in sizes.items() if number not in before)
        most = max(most, *Counter((size.bit_length() - 1) // 2 for size in sizes.values()).values())
        assert sum(sizes.values()) == 64 * (batch + 1)
    assert most == 3
    assert written / (64 * 100) < 1 + np.log(100) / np.log(4)


def test_tails_are_read_only_where_a_head_is_there(db):
    rng = np.random.default_rng(0)
    note(db, [rng.bytes(16) for _ in range(2000)], 1)
    seen = []
    db.set_trace_callback(seen.append)
    assert not batches_of(db, [rng.bytes(16) for _ in range(2000)])
    assert any("heads" in one for one in seen)
    assert not [one for one in seen if "tails" in one]


# Files of the version before ------------------------------------------------------------------


def with_rows(house):
    """The file of people as the version before wrote it: a row for each person and batch."""
    with sqlite3.connect(house.folder / "people") as db:
        db.executescript(
            "CREATE TABLE person (hash BLOB, batch INTEGER, PRIMARY KEY (hash, batch))"
            "WITHOUT ROWID; UPDATE about SET value = '2' WHERE name = 'format'"
        )
        for part in range(runs.PARTS):
            places = db.execute("SELECT place FROM part WHERE place / ? = ?", [2**32, part])
            heads, tails, batches = runs._read(db, [place for (place,) in places])
            ends = tails.view("V12").tolist()  # an element lacks its last zeros
            hashes = [head.tobytes() + end for head, end in zip(heads, ends, strict=True)]
            rows = zip(hashes, map(int, batches), strict=True)
            db.executemany("INSERT INTO person VALUES (?, ?)", rows)
        db.executescript("DROP TABLE part; DROP TABLE run")
    db.close()


@pytest.fixture
def old(tmp_path, monkeypatch):
    """A house of two batches, of whom five people are in both."""
    monkeypatch.setattr(runs, "AT_ONCE", 7)
    house = House(tmp_path / "house", cap=3.0)
    house.admit(named(*range(20)), "pay", 2)
    house.admit(named(*range(15, 35)), "pay", 2)
    with_rows(house)
    return house


def test_a_file_of_the_version_before_is_read_once_and_then_as_this_one(old):
    assert People(old.folder / "people", b"").summary() == {  # as the command does, without a key
        "people": 35,
        "batches": 2,
        "in_several": 5,
    }
    with sqlite3.connect(old.folder / "people") as db:
        assert not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'person'").fetchall()
        assert [*db.execute("SELECT value FROM about WHERE name = 'format'")] == [("3",)]
    with pytest.raises(InputError, match="some of these people are in 2 batches"):
        old.admit(named(19, *range(40, 60)), "pay", 2)
    assert old.admit(named(*range(30, 60)), "skip") == list(range(35, 60))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_kill_while_it_is_read_leaves_the_one_or_the_other(old, tmp_path):
    data, said = (old.folder / "people").read_bytes(), []
    for number in range(1, 20000, 97):
        (old.folder / "people").write_bytes(data)
        ended = killed_at(number, lambda: old.people().summary(), ("people.py", "runs.py"))
        with sqlite3.connect(old.folder / "people") as db:
            (form,) = db.execute("SELECT value FROM about WHERE name = 'format'").fetchone()
            said.append(form)
            tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
            assert ("person" in tables) == (said[-1] == "2")
        assert old.people().summary() == {"people": 35, "batches": 2, "in_several": 5}
        if ended:
            break
    assert said.count("2") > 5
    assert said[-1] == "3"


# What a hash ends with ------------------------------------------------------------------------


def test_people_whose_hash_ends_with_zeros_are_left_out_like_others(tmp_path, monkeypatch):
    """An element of an array of bytes lacks them."""
    own = People.hashed
    monkeypatch.setattr(People, "hashed", lambda self, one: own(self, one)[:13] + bytes(3))
    house = House(tmp_path / "house")
    house.admit(named(*range(20)))
    assert house.admit(named(*range(15, 40)), "skip") == list(range(20, 40))
    assert house.people().withdraw(named(3, 50), house.ledger)["in_what_was_released"] == 1
    assert house.admit(named(*range(45, 60)), "skip") == [*range(45, 50), *range(51, 60)]
