"""The file of people: who returns is found, and no crash, race or other file hides anybody."""

import os
import secrets
import sqlite3
import sys
import time
from decimal import Decimal

import ibis
import numpy as np
import pyarrow as pa
import pytest

import privtraj as pt
from killing import killed_at
from privtraj.base.errors import BudgetError, InputError
from privtraj.privacy.ledger_file import LedgerFile
from privtraj.stream import people as people_module
from privtraj.stream import runs
from privtraj.stream.people import People, new_key

pytestmark = pytest.mark.usefixtures("fast")
BUDGET = (1.0, 1e-5, "add-remove", "a fit")


class House:
    """A ledger and a file of people, in a folder of their own."""

    def __init__(self, folder, cap=1.0, window=None):
        folder.mkdir(exist_ok=True)
        self.folder, self.key = folder, folder / "key"
        if not self.key.exists():
            new_key(self.key)
        self.ledger = LedgerFile(
            folder / "ledger", cap_epsilon=cap, cap_delta=0.5, window_days=window
        )

    def people(self, **how):
        return People.open(self.folder / "people", self.key, **how)

    def admit(self, ids, returning="refuse", most=1, entry=None, **how):
        """Who is in, of a batch of these ids."""
        ledger, given = self.ledger, ids if hasattr(ids, "hashed_people") else batch(ids)
        if entry is not None:
            ledger.new_entry = lambda: entry
        people = self.people(returning=returning, most_batches=most)
        left, _ = people.admit(given, ledger, *BUDGET, **how)
        points = getattr(left._rows, "points", np.empty((0, 1)))  # a database keeps its own
        return sorted(int(1000 * x) for x in points[:, 0])

    @property
    def entries(self):
        return LedgerFile(self.folder / "ledger").summary()["entries"]

    @property
    def epsilons(self):
        groups = LedgerFile(self.folder / "ledger").summary()["groups"]
        return [group["epsilon"] for group in groups]


@pytest.fixture
def house(tmp_path):
    return House(tmp_path / "house")


def batch(ids, same="exact"):
    """A record of each; the point of whoever has a number in the id says it."""
    numbers = [int("".join(c for c in str(one) if c.isdigit()) or 0) for one in ids]
    points = (np.array(numbers) + 0.5) / 1000
    times = np.arange(len(ids)) % 5
    options = {"bounds": [(0, 1)], "time_range": (0, 5), "same_person": same}
    return pt.Snapshots.from_arrays(times, points, person=ids, **options)


def named(*numbers):
    return [f"p{k}" for k in numbers]


# Who returns ----------------------------------------------------------------------------------


def test_the_same_ids_twice_are_found_and_others_have_a_budget_of_their_own(house):
    house.admit(named(*range(20)))
    house.admit(named(*range(20, 40)))
    assert house.epsilons == [1.0, 1.0]
    before = house.folder.joinpath("ledger").read_bytes()
    with pytest.raises(InputError, match=r"^3 of 20 people are in an earlier batch of"):
        house.admit(named(*range(37, 57)))
    assert house.folder.joinpath("ledger").read_bytes() == before
    house.admit(named(*range(40, 60)))
    assert house.people().summary() == {"people": 60, "batches": 3, "in_several": 0}


SAME = {
    "whole and text": (list(range(20)), [str(k) for k in range(19, 39)]),
    "whole and double": (list(range(20)), [float(k) for k in range(19, 39)]),
    "text and text that went through doubles": (
        [str(k) for k in range(20)],
        [f"{k}.0" for k in range(19, 39)],
    ),
    "padded and double": ([f"{k:08d}" for k in range(20)], [float(k) for k in range(19, 39)]),
    "double and decimal": (
        [float(k) for k in range(20)],
        [Decimal(f"{k}.00") for k in range(19, 39)],
    ),
    "text and bytes": (named(*range(20)), [one.encode() for one in named(*range(19, 39))]),
}


@pytest.mark.parametrize("kind", SAME)
def test_one_person_is_one_in_every_type_of_column(kind, house):
    first, second = (pa.array(ids) for ids in SAME[kind])
    house.admit(first_of(first))
    with pytest.raises(InputError, match=r"^1 of 20 people"):
        house.admit(first_of(second))


def first_of(ids, **how):
    n = len(ids)
    table = pa.table({"id": ids, "t": np.arange(n) % 5 * 1.0, "x": np.linspace(0, 1, n)})
    known = {"time": "t", "bounds": {"x": (0, 1)}, "time_range": (0, 5), "person": "id"}
    return pt.Snapshots.from_table(how.pop("into", lambda t: t)(table), **known, **how)


def test_identifiers_are_compared_as_the_table_compares_them(house, tmp_path):
    house.admit(batch(named(*range(20)), "folded"))
    with pytest.raises(InputError, match=r"^2 of 20 people"):
        house.admit(batch([" P3", "p4 ", *named(*range(20, 38))], "folded"))
    with pytest.raises(InputError, match="compares identifiers without the blanks around them"):
        house.admit(batch(named(*range(20, 40)), "exact"))
    other = House(tmp_path / "other")
    other.admit(named(*range(20)))
    other.admit([" P3", "p4 ", *named(*range(20, 38))])  # who are others, as written
    assert other.epsilons == [1.0, 1.0]


@pytest.mark.parametrize("returning", ["refuse", "skip"])
def test_a_database_is_read_in_batches_and_gives_the_same(returning, house):
    def into(table):
        connection = ibis.duckdb.connect()
        connection.con.register("arrow", table)
        connection.raw_sql("CREATE TABLE visits AS SELECT * FROM arrow")
        return connection.table("visits")

    house.admit(first_of(pa.array(named(*range(20))), into=into))
    returned = first_of(pa.array(named(*range(15, 35))), into=into)
    if returning == "refuse":
        with pytest.raises(InputError, match=r"^5 of 20 people"):
            house.admit(returned)
    else:
        everybody = np.linspace(0, 1, 20, dtype=np.float32)
        assert house.admit(returned, "skip") == sorted(int(1000 * x) for x in everybody[5:])


def test_people_without_identifiers_cannot_be_compared(house):
    given = pt.Snapshots.from_arrays(np.arange(20) % 5, np.arange(20), bounds=[(0, 20)], bins=5,
                                     time_range=(0, 5))  # fmt: skip
    with pytest.raises(InputError, match="people compares identifiers: say which column"):
        house.admit(given)


# Skipping: a person is in one batch, whoever else is there -------------------------------------


def test_streams_that_differ_by_one_person_differ_in_one_batch_by_that_person(tmp_path):
    """And each batch has whom the definition of S_t says. Random streams, seed fixed."""
    rng = np.random.default_rng(0)
    for stream in range(12):
        often = rng.integers(0, 60, size=(3, 25))
        batches = [sorted({*often[t], *range(100 * t + 100, 100 * t + 112)}) for t in range(3)]
        person = int(rng.choice(batches[0]))
        batches[rng.integers(1, 3)].append(person)
        batches = [sorted({*one}) for one in batches]
        seen = []
        for world, given in enumerate((batches, [[p for p in b if p != person] for b in batches])):
            house = House(tmp_path / f"{stream} {world}")
            seen.append([set(house.admit(named(*one), "skip")) for one in given])
            before = set()
            for one, kept in zip(given, seen[-1], strict=True):
                assert kept == {*one} - before
                before |= {*one}
        differences = [a ^ b for a, b in zip(*seen, strict=True)]
        assert sorted(map(len, differences)) == [0, 0, 1]
        assert set().union(*differences) == {person}


def test_too_few_who_are_new_are_refused_and_nothing_is_noted(house):
    house.admit(named(*range(20)))
    before = house.folder.joinpath("ledger").read_bytes()
    with pytest.raises(InputError, match=r"^9 usable records are too few"):
        house.admit(named(*range(29)), "skip")
    assert house.folder.joinpath("ledger").read_bytes() == before
    assert len(house.admit(named(*range(30)), "skip")) == 10


# Paying ---------------------------------------------------------------------------------------


def test_who_returns_pays_for_every_batch_and_the_cap_holds_for_the_largest_of_them(tmp_path):
    house = House(tmp_path / "house", cap=2.0)
    for first in (0, 10, 20):  # three batches, of which a person may be in two
        house.admit(named(*range(first, first + 20)), "pay", 2)
    assert house.epsilons == [1.0, 1.0, 1.0]
    assert house.ledger.summary()["returning"]["epsilon"] == 2.0
    with pytest.raises(InputError, match="some of these people are in 2 batches of"):
        house.admit(named(*range(15, 35)), "pay", 2)
    before = house.folder.joinpath("ledger").read_bytes()
    with pytest.raises(BudgetError, match=r"has epsilon 0 and delta .* this fit asks for 1"):
        house.admit(
            named(*range(40, 60)), "pay", 3
        )  # of whom nobody returns: that is not looked at
    assert house.folder.joinpath("ledger").read_bytes() == before
    with pytest.raises(BudgetError, match="has epsilon 0 and"):  # a fit that may be of anybody
        house.ledger.reserve(bytes(32), *BUDGET)
    house.ledger.charge(0.5, 0.0, "add-remove", "another tool")
    with pytest.raises(BudgetError, match=r"has epsilon 0\.5 and"):
        house.admit(named(*range(40, 60)), "pay", 2)
    raised = House(tmp_path / "house", cap=5.0)
    raised.admit(named(*range(15, 35)), "pay", 3)
    assert raised.people().summary() == {"people": 40, "batches": 4, "in_several": 25}


def test_a_person_may_be_in_so_many_batches_of_a_window_and_return_after_it(tmp_path):
    house, everybody = House(tmp_path / "house", cap=2.0, window=10), named(*range(20))

    def admit(start, most):
        given = pt.Snapshots.from_arrays(
            np.linspace(start, start + 5, 20), np.linspace(0, 1, 20), bounds=[(0, 1)],
            time_range=(start, start + 5), person=everybody,
        )  # fmt: skip
        house.admit(given, "pay", most)

    admit(0, 2)
    admit(5, 2)
    with pytest.raises(InputError, match=r"in 2 batches of .* that 10 days touch already"):
        admit(10, 2)
    with pytest.raises(BudgetError, match="has epsilon 0 and"):
        admit(10, 3)
    admit(16, 2)  # 11 days after the last of the first batch, 6 after the last of the second
    admit(21, 2)
    with pytest.raises(InputError, match=r"in 2 batches of .* that 10 days touch already"):
        admit(24, 2)  # the last two of them
    assert house.epsilons == [1.0] * 4
    assert "in 2 groups that any 10 days touch has at most epsilon 2" in house.ledger.describe()


@pytest.mark.parametrize("days", [None, 3.0])
def test_without_identifiers_a_window_is_for_everybody(tmp_path, days):
    """The cap holds for the sum of all batches that so many days touch, and of no others."""
    ledger = LedgerFile(tmp_path / "l", cap_epsilon=2.0, cap_delta=0.5, window_days=days)
    for start in (0, 2):
        ledger.reserve(bytes([start] * 32), *BUDGET, span=(start, start + 2))
    with pytest.raises(BudgetError, match="has epsilon 0 and"):
        LedgerFile(tmp_path / "l").reserve(bytes([4] * 32), *BUDGET, span=(4, 6))
    later = LedgerFile(tmp_path / "l")
    if days is None:
        with pytest.raises(BudgetError, match="has epsilon 0 and"):
            later.reserve(bytes([8] * 32), *BUDGET, span=(8, 9))
    else:
        assert later.window_days == days
        assert later.reserve(bytes([8] * 32), *BUDGET, span=(8, 9)).left_epsilon == 1.0


@pytest.mark.parametrize("span", [(50, 0), (np.nan, 1), (0, np.nan), (0, np.inf), ("0", 1)])
def test_people_who_were_never_there_are_not_recorded(tmp_path, span):
    """In no window they would pay for nothing, however often."""
    ledger = LedgerFile(tmp_path / "l", cap_epsilon=2.0, cap_delta=0.5, window_days=10)
    with pytest.raises(InputError, match="a span must be two numbers, the first of them not"):
        ledger.reserve(bytes(32), *BUDGET, span=span)
    assert not ledger.begun


@pytest.mark.parametrize("how", [("pay", 1), ("skip", 2), ("refuse", 2), ("pay", 2.5), ("pay", 21)])
def test_a_number_of_batches_goes_with_paying(how, house):
    with pytest.raises(InputError, match="most_batches is a whole number from 2 to 20 with"):
        house.people(returning=how[0], most_batches=how[1])


# Other files ----------------------------------------------------------------------------------


def test_fits_of_the_ledger_that_the_file_does_not_know_add_up(tmp_path):
    house = House(tmp_path / "house", cap=3.0)
    house.ledger.reserve(bytes(32), *BUDGET)
    house.admit(named(*range(20)))
    assert house.epsilons == [2.0]
    house.admit(named(*range(20, 40)), new_people=True)  # the steward's word about the first fit
    assert house.epsilons == [2.0, 1.0]


def test_another_ledger_or_key_is_refused(house, tmp_path):
    house.admit(named(*range(20)))
    (tmp_path / "house" / "ledger").rename(tmp_path / "away")
    (tmp_path / "house" / "ledger.seal").unlink()
    with pytest.raises(InputError, match="lacks batches that"):
        house.admit(named(*range(20)))
    (tmp_path / "away").rename(tmp_path / "house" / "ledger")
    house.key.unlink()
    new_key(house.key)
    with pytest.raises(InputError, match="was made with another key: give that one"):
        house.admit(named(*range(20)))


def test_without_the_key_nobody_is_recognised(house, tmp_path):
    """Files of the same people under different keys have no hash in common, and no name."""
    other = House(tmp_path / "other")
    house.admit(named(*range(20)))
    other.admit(named(*range(20)))

    def hashes(one):
        with sqlite3.connect(one.folder / "people") as db:
            query = "SELECT place, heads, tails FROM part"
            parts = [(p, memoryview(h).cast("I"), t) for p, h, t in db.execute(query)]
            return {
                (head, t[12 * k : 12 * k + 12]) for _, h, t in parts for k, head in enumerate(h)
            }

    assert len(hashes(house)) == len(hashes(other)) == 20
    assert not hashes(house) & hashes(other)
    assert b"p7" not in (house.folder / "people").read_bytes()
    if sys.platform != "win32":
        for file in (house.key, house.folder / "people"):
            assert file.stat().st_mode & 0o077 == 0


# Crashes and races ----------------------------------------------------------------------------

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@needs_fork
@pytest.mark.parametrize("step", [67, pytest.param(1, marks=pytest.mark.thorough)])
def test_a_kill_at_any_line_neither_spends_twice_nor_forgets_anybody(step, tmp_path, monkeypatch):
    """The batch joins what was written of those before it."""
    monkeypatch.setattr(runs, "PARTS", 3)
    points = 0
    for number in range(step, 5000, step):
        house = House(tmp_path / str(number))
        for first in (0, 60, 80):
            house.admit(named(*range(first, first + 20)))
        entry = secrets.token_hex(8)

        def again(house=house, entry=entry):
            return house.admit(named(*range(15, 40)), "skip", entry=entry)

        ended = killed_at(number, again, ("people.py", "runs.py", "ledger_file.py"))
        reserved = {one["id"] for one in house.entries}
        with sqlite3.connect(house.folder / "people") as db:
            noted = {one for (one,) in db.execute("SELECT entry FROM batch WHERE people > 0")}
        assert noted <= reserved
        assert entry in noted or not ended
        assert again() == list(range(20, 40))
        assert house.epsilons == [1.0] * 4
        assert house.people().summary() == {"people": 80, "batches": 4, "in_several": 0}
        with sqlite3.connect(house.folder / "people") as db:
            assert [*db.execute("SELECT people FROM run")] == [(80,)]
        if ended:
            break
        points += 1
    assert points > 5
    assert ended


@needs_fork
def test_of_two_processes_with_the_same_people_one_is_refused(house):
    house.admit(named(*range(100, 120)))
    children = []
    for number in range(4):
        child = os.fork()
        if child == 0:
            try:
                house.admit([*named(*range(20)), f"own{number}"])
                os._exit(0)
            except InputError:
                os._exit(3)
            os._exit(4)
        children.append(child)
    codes = sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)
    assert codes == [0, 3, 3, 3]
    assert house.people().summary()["people"] == 41


@pytest.mark.parametrize("what", ["no database", "a folder"])
def test_what_is_no_file_of_people(what, house):
    path = house.folder / "people"
    path.mkdir() if what == "a folder" else path.write_text("people\n" * 100)
    with pytest.raises(InputError, match=r"the file of people '.*' cannot be used"):
        house.admit(named(*range(20)))
    assert not (house.folder / "ledger").exists()


def test_a_full_disk_is_a_sentence_and_nothing_is_lost(house, monkeypatch):
    house.admit(named(*range(20)))
    size = (house.folder / "people").stat().st_size // 4096
    full = f"{people_module._TABLES}PRAGMA max_page_count = {size};"  # SQLite then says so itself
    with monkeypatch.context() as patch:
        patch.setattr(people_module, "_TABLES", full)
        with pytest.raises(InputError, match="database or disk is full"):
            house.admit(named(*range(20, 900)), entry="0" * 16)
    assert house.people().summary() == {"people": 20, "batches": 1, "in_several": 0}
    assert len(house.admit(named(*range(20, 900)), entry="0" * 16)) == 880
    assert house.epsilons == [1.0, 1.0]


@pytest.mark.thorough
def test_a_million_people(house, capsys):
    known = house.people()
    ids = [f"patient-{k:09d}" for k in range(1_000_000)]
    began = time.process_time()
    known.admit(batch_of(ids), house.ledger, *BUDGET)
    first = time.process_time() - began
    began = time.process_time()
    people = house.people(returning="skip")
    people.admit(batch_of([*ids[:1000], *(f"new-{k}" for k in range(9000))]), house.ledger, *BUDGET)
    with capsys.disabled():
        size = (house.folder / "people").stat().st_size / 2**20
        print(f" 10^6 people in {first:.1f} s of CPU, {size:.0f} MiB; ", end="")
        print(f"10^4 against them in {time.process_time() - began:.2f} s", end="")
    assert people.seen.startswith("1000 of 10000 people")


def batch_of(ids):
    n = len(ids)
    return pt.Snapshots.from_arrays(
        np.arange(n) % 5, np.zeros(n), bounds=[(0, 1)], time_range=(0, 5), person=ids
    )
