"""The ledger on disk: it adds up, outlives crashes and races, and shows what was done to it."""

import hashlib
import json
import math
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privtraj.base.errors import BudgetError, InputError
from privtraj.privacy import ledger_file
from privtraj.privacy.ledger_file import CHARGED, FITTED, RESERVED, LedgerFile, seal_of

MODEL = "ab" * 32
FIRST, SECOND, THIRD, FOURTH = (hashlib.sha256(bytes([k])).digest() for k in range(4))


def sealed_lines(path):
    """How many lines the seal of a ledger knows of."""
    return int(seal_of(path).read_text().split("-")[0])


@pytest.fixture(autouse=True)
def fast(monkeypatch):
    """Cheap fingerprints and no waiting for the disk; the subprocesses below do it in full."""
    monkeypatch.setattr(ledger_file, "_SCRYPT_N", 2)
    monkeypatch.setattr(os, "fsync", lambda file: None)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "house.ledger"


def capped(path, epsilon=1.0, delta=1e-4):
    return LedgerFile(path, cap_epsilon=epsilon, cap_delta=delta)


def fit(ledger, digest=FIRST, epsilon=0.25, delta=1e-5, adjacency="add-remove", **how):
    return ledger.reserve(digest, epsilon, delta, adjacency, "a fit", **how)


def totals(path):
    return [(row["epsilon"], row["delta"]) for row in LedgerFile(path).summary()["groups"]]


def groups(path):
    return [entry["group"] for entry in LedgerFile(path).summary()["entries"]]


def refused_untouched(path, error, match, call):
    before = path.read_bytes()
    with pytest.raises(error, match=match):
        call()
    assert path.read_bytes() == before


# Adding up ----------------------------------------------------------------------------------


def test_round_trip(path):
    ledger = capped(path, 2.0)
    first = fit(ledger, epsilon=0.5)
    second = fit(ledger, epsilon=0.3)
    ledger.settle(first.id, spent_epsilon=0.49, model=MODEL)
    charge = ledger.charge(0.1, 2e-5, "add-remove", "a table of another tool")
    summary = LedgerFile(path).summary()
    assert json.loads(json.dumps(summary)) == summary
    assert (summary["adjacency"], summary["cap_epsilon"]) == ("add-remove", 2.0)
    assert [entry["id"] for entry in summary["entries"]] == [first.id, second.id, charge.id]
    assert [entry["state"] for entry in summary["entries"]] == [FITTED, RESERVED, CHARGED]
    assert [entry["spent_epsilon"] for entry in summary["entries"]] == [0.49, None, None]
    assert [entry["model"] for entry in summary["entries"]] == [MODEL, None, None]
    assert summary["groups"] == [
        {"group": 0, "epsilon": 0.9, "delta": 4e-5, "left_epsilon": 1.1, "left_delta": 6e-5}
    ]
    assert (charge.left_epsilon, charge.left_delta) == (1.1, 6e-5)
    assert (first.recognised, second.recognised, charge.recognised) == (False, True, False)


def test_adds_up_to_exactly_the_cap_and_no_further(path):
    ledger = capped(path, 1.0, 1e-4)
    left = [fit(ledger, epsilon=0.1, delta=1e-5).left_epsilon for _ in range(10)]
    assert left == [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0]
    refused_untouched(path, BudgetError, "epsilon 0 and", lambda: fit(ledger, epsilon=1e-6))


def test_amounts_that_a_program_computed_may_be_off_by_their_rounding_and_no_more(path):
    ledger = capped(path, 1.0)
    last = fit(ledger, epsilon=1 + 1e-12)
    with pytest.raises(BudgetError, match="more than the 1 reserved"):
        ledger.settle(last.id, spent_epsilon=1 + 1e-7, model=MODEL)
    ledger.settle(last.id, spent_epsilon=1 + 1e-11, model=MODEL)


def test_delta_has_a_cap_of_its_own(path):
    ledger = capped(path, 10.0, 1e-5)
    fit(ledger, delta=1e-5)
    refused_untouched(path, BudgetError, "delta 0 left", lambda: fit(ledger, delta=1e-9))
    fit(ledger, delta=0.0)


def test_settling_gives_nothing_back(path):
    ledger = capped(path)
    reservation = fit(ledger, epsilon=1.0)
    ledger.settle(reservation.id, spent_epsilon=0.1, model=MODEL)
    assert totals(path) == [(1.0, 1e-5)]
    refused_untouched(path, BudgetError, "epsilon 0 and", lambda: fit(ledger))


def test_settles_once_what_was_reserved_and_no_more(path):
    ledger = capped(path)
    reservation = fit(ledger)

    def settle(entry_id=reservation.id, spent=0.2, model=MODEL):
        ledger.settle(entry_id, spent_epsilon=spent, model=model)

    refused_untouched(path, InputError, "no open reservation", lambda: settle("0" * 16))
    refused_untouched(path, BudgetError, "more than the 0.25 reserved", lambda: settle(spent=0.26))
    refused_untouched(path, InputError, "spent_epsilon", lambda: settle(spent=math.nan))
    refused_untouched(path, InputError, "64 hexadecimal", lambda: settle(model="model.npz"))
    settle(spent=0.25)
    refused_untouched(path, InputError, "no open reservation", settle)


def test_refusal_says_what_is_left_and_rounds_it_down(path):
    ledger = capped(path, 2.0, 1e-4)
    fit(ledger, epsilon=1.5)
    with pytest.raises(BudgetError) as refusal:
        fit(ledger, epsilon=1.0)
    assert str(refusal.value) == (
        f"the ledger '{path}' has epsilon 0.5 and delta 9e-05 left of 2 and 0.0001, and this fit "
        "asks for 1 and 1e-05: lower epsilon and delta, or raise the cap if you may"
    )
    with pytest.raises(BudgetError, match="say new_people=True if"):
        fit(ledger, SECOND, epsilon=1.0)
    fit(ledger, epsilon=0.123456)
    with pytest.raises(BudgetError, match=r"epsilon 0\.3765 and .* asks for 0\.3766 and"):
        fit(ledger, epsilon=0.37655)


def test_what_was_released_elsewhere_is_recorded_beyond_the_cap_too(path):
    ledger = capped(path, 1.0)
    fit(ledger, epsilon=0.75)
    assert ledger.charge(1.0, 0.0, "add-remove", "elsewhere").left_epsilon == 0
    assert totals(path) == [(1.75, 1e-5)]
    with pytest.raises(BudgetError, match="has epsilon 0 and"):
        fit(ledger, epsilon=0.01)


def test_caps_are_remembered_and_can_be_changed(path):
    fit(capped(path, 1.0), epsilon=0.75)
    refused_untouched(
        path, BudgetError, "left of 1 and", lambda: fit(LedgerFile(path), epsilon=0.5)
    )
    fit(capped(path, 2.0), epsilon=0.5)
    fit(LedgerFile(path), epsilon=0.25)
    assert LedgerFile(path).summary()["groups"][0]["left_epsilon"] == 0.5
    refused_untouched(path, BudgetError, "epsilon 0 and", lambda: fit(capped(path, 1.0)))
    assert LedgerFile(path).summary()["cap_epsilon"] == 2.0


def test_a_new_ledger_needs_both_caps(path):
    with pytest.raises(InputError, match="both cap_epsilon and cap_delta"):
        fit(LedgerFile(path))
    assert not path.exists()
    path.touch()
    with pytest.raises(InputError, match="both cap_epsilon and cap_delta"):
        fit(LedgerFile(path))
    for caps in [{"cap_epsilon": 1.0}, {"cap_delta": 0.0}]:
        with pytest.raises(InputError, match="needs both"):
            LedgerFile(path, **caps)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(0.0, 0.0), (math.inf, 0.0), (math.nan, 0.0), (1.0, 1.0), (1.0, -1e-9)]
)
def test_amounts_out_of_range_are_refused(path, epsilon, delta):
    with pytest.raises(InputError, match=r"^cap_(epsilon|delta) must be"):
        capped(path, epsilon, delta)
    ledger = capped(path)
    fit(ledger)
    match = "^(epsilon|delta) must be"
    refused_untouched(path, InputError, match, lambda: fit(ledger, epsilon=epsilon, delta=delta))


def test_one_adjacency_per_ledger(path):
    ledger = capped(path)
    fit(ledger, adjacency="replace-one")
    match = "counts under replace-one.*second ledger"
    refused_untouched(path, InputError, match, lambda: fit(ledger))
    refused_untouched(path, InputError, match, lambda: ledger.charge(0.1, 0, "add-remove", "x"))
    refused_untouched(path, InputError, "must be", lambda: fit(ledger, adjacency="both"))


# Whose records ------------------------------------------------------------------------------


def test_fingerprint_is_slow_salted_and_all_that_is_kept(tmp_path, monkeypatch):
    monkeypatch.undo()
    seen = []
    for name in ("a.ledger", "b.ledger"):
        path = tmp_path / name
        fit(capped(path))
        header, entry = map(json.loads, path.read_text().splitlines())
        salt = bytes.fromhex(header["salt"])
        slow = hashlib.scrypt(FIRST, salt=salt, n=2**14, r=8, p=1).hex()
        assert len(salt) == 16
        assert entry["fingerprint"] == slow[:16]
        assert slow[16:24] not in path.read_text()
        assert FIRST.hex()[:16] not in path.read_text()
        assert LedgerFile(path).reserve(FIRST, 0.5, 0.0, "add-remove", "other words").recognised
        assert not fit(LedgerFile(path), SECOND).recognised
        seen.append(entry["fingerprint"])
    assert seen[0] != seen[1]


def test_records_not_recognised_add_up_with_the_others(path):
    ledger = capped(path)
    fit(ledger, FIRST, epsilon=0.6)
    assert fit(ledger, SECOND, epsilon=0.3).left_epsilon == 0.1
    assert groups(path) == [0, 0]
    assert totals(path) == [(0.9, 2e-5)]


def test_new_people_have_a_budget_of_their_own(path):
    ledger = capped(path)
    fit(ledger, FIRST, epsilon=0.75)
    assert fit(ledger, SECOND, epsilon=0.5, new_people=True).left_epsilon == 0.5
    assert fit(ledger, SECOND, epsilon=0.25).left_epsilon == 0.25
    assert fit(ledger, FIRST, epsilon=0.125).left_epsilon == 0.125
    assert groups(path) == [0, 1, 1, 0]
    assert totals(path) == [(0.875, 2e-5), (0.75, 2e-5)]
    refused_untouched(path, BudgetError, "epsilon 0.125 and", lambda: fit(ledger, FIRST))


def test_that_people_are_new_is_the_stewards_word_and_the_sum_is_said(path):
    ledger = capped(path)
    fit(ledger, FIRST, epsilon=0.75)
    assert "steward's word" not in ledger.describe()
    fit(ledger, SECOND, epsilon=0.5, new_people=True)
    ledger.charge(0.125, 0.0, "add-remove", "for everybody, and counted once in the sum")
    said = ledger.describe()
    assert "the steward's word, unless a file of them was kept" in said
    assert "their sum, epsilon 1.375 and delta 2e-05." in said


def test_unknown_records_are_charged_to_every_group(path):
    ledger = capped(path)
    fit(ledger, FIRST, epsilon=0.5)
    fit(ledger, SECOND, epsilon=0.25, delta=6e-5, new_people=True)
    third = fit(ledger, THIRD, epsilon=0.25)
    assert (third.left_epsilon, third.left_delta) == (0.25, 3e-5)  # of the group with less of it
    assert fit(ledger, THIRD, epsilon=0.125).recognised
    assert groups(path) == [0, 1, None, None]
    assert totals(path) == [(0.875, 3e-5), (0.625, 8e-5)]
    refused_untouched(
        path, BudgetError, "delta 2e-05 left", lambda: fit(ledger, THIRD, epsilon=0.1, delta=3e-5)
    )
    refused_untouched(path, BudgetError, "epsilon 0.125 and", lambda: fit(ledger, THIRD))
    assert fit(ledger, SECOND, epsilon=0.375).left_epsilon == 0.0
    assert fit(ledger, FOURTH, epsilon=0.5, new_people=True).left_epsilon == 0.125
    assert groups(path)[-1] == 2


def test_charges_count_for_everybody_present_and_future(path):
    ledger = capped(path)
    assert ledger.charge(0.25, 0.0, "add-remove", "before any fit").left_epsilon == 0.75
    assert LedgerFile(path).summary()["groups"][0]["left_epsilon"] == 0.75
    fit(ledger, FIRST, epsilon=0.5)
    fit(ledger, SECOND, epsilon=0.125, new_people=True)
    assert ledger.charge(0.125, 0.0, "add-remove", "after both").left_epsilon == 0.125
    assert groups(path) == [None, 0, 1, None]
    assert [epsilon for epsilon, _ in totals(path)] == [0.875, 0.5]


def test_recognised_people_are_not_new(path):
    ledger = capped(path)
    fit(ledger, new_people=True)
    refused_untouched(
        path, InputError, "leave out new_people", lambda: fit(ledger, new_people=True)
    )


@pytest.mark.parametrize("digest", [b"short", FIRST.hex(), None])
def test_a_digest_is_a_sha256(path, digest):
    with pytest.raises(InputError, match="sha256"):
        fit(capped(path), digest)


digits = st.integers(1, 9)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 2), digits, digits), max_size=12), digits)
def test_accepts_exactly_what_fits(asked, cap):
    spent = [Fraction(0), Fraction(0)]
    with tempfile.TemporaryDirectory() as folder:
        ledger = capped(Path(folder, "x"), cap / 5, cap / 50)
        for who, tenths, hundredths in asked:
            after = [spent[0] + Fraction(tenths, 10), spent[1] + Fraction(hundredths, 100)]
            fits = after[0] <= Fraction(cap, 5) and after[1] <= Fraction(cap, 50)
            try:
                fit(ledger, (FIRST, SECOND, THIRD)[who], tenths / 10, hundredths / 100)
                assert fits
                spent = after
            except BudgetError:
                assert not fits
        if any(spent):
            assert totals(ledger.path) == [tuple(map(float, spent))]


# Who is in which records: some share people, some do not.
PEOPLE = {b"a": {1}, b"b": {2}, b"c": {3, 4}, b"ab": {1, 2}, b"bc": {2, 3}, b"": {1, 2, 3, 4}}
asks = st.tuples(
    st.sampled_from(list(PEOPLE)), st.booleans(), st.floats(0.01, 0.4), st.floats(0, 0.4)
)


@pytest.mark.slow
@settings(max_examples=100)
@given(st.lists(asks, max_size=14))
def test_no_person_ever_pays_more_than_the_cap(asked):
    """A steward who calls people new only when they are; the empty name stands for a charge."""
    paid = dict.fromkeys(range(1, 5), (0.0, 0.0))
    seen, entered = set(), set()
    with tempfile.TemporaryDirectory() as folder:
        ledger = capped(Path(folder, "x"), 1.0, 0.9)
        for name, say_so, epsilon, delta in asked:
            new = say_so and not PEOPLE[name] & entered
            try:
                if name:
                    digest = hashlib.sha256(name).digest()
                    made = fit(ledger, digest, epsilon, delta, new_people=new)
                    assert made.recognised == (name in seen)
                    seen.add(name)
                    entered |= PEOPLE[name]
                else:
                    ledger.charge(epsilon, delta, "add-remove", "elsewhere")
            except BudgetError:
                continue
            for person in PEOPLE[name]:
                paid[person] = paid[person][0] + epsilon, paid[person][1] + delta
            for kind, cap in enumerate([1.0, 0.9]):
                reported = max(total[kind] for total in totals(ledger.path))
                assert max(amounts[kind] for amounts in paid.values()) <= reported * (1 + 1e-12)
                if name:  # a charge is recorded whatever the cap
                    assert max(paid[p][kind] for p in PEOPLE[name]) <= cap * (1 + 1e-9)


# Crashes and races --------------------------------------------------------------------------


@pytest.mark.slow
def test_a_line_torn_at_any_byte_is_ignored_and_cut_off(path):
    ledger = capped(path, 10.0)
    first, sealed = fit(ledger, epsilon=0.5), seal_of(path).read_bytes()
    second = fit(ledger, SECOND, epsilon=0.25)
    whole = path.read_bytes()
    start = whole.rindex(b"\n", 0, -1) + 1
    for end in range(start, len(whole) - 1):
        path.write_bytes(whole[:end])
        seal_of(path).write_bytes(sealed)  # which is written after the line
        assert [entry["id"] for entry in ledger.summary()["entries"]] == [first.id]
        assert totals(path) == [(0.5, 1e-5)]
        assert path.read_bytes() == whole[:end]  # reading changes nothing
        third = fit(ledger, epsilon=0.125)
        assert [entry["id"] for entry in ledger.summary()["entries"]] == [first.id, third.id]
        assert path.read_bytes().startswith(whole[:start])
        assert totals(path) == [(0.625, 2e-5)]
    for end in (len(whole) - 1, len(whole)):  # an editor may have taken the last newline
        path.write_bytes(whole[:end])
        seal_of(path).write_bytes(sealed)
        assert [entry["id"] for entry in ledger.summary()["entries"]] == [first.id, second.id]
        third = fit(ledger, epsilon=0.125)
        assert [entry["id"] for entry in ledger.summary()["entries"]][-1] == third.id
        assert path.read_bytes().startswith(whole)


@pytest.mark.slow
def test_a_creation_torn_at_any_byte_counts_as_a_new_ledger(path):
    ledger = capped(path)
    fit(ledger, adjacency="replace-one")
    whole = path.read_bytes()
    for end in range(len(whole) - 1):
        path.write_bytes(whole[:end])
        seal_of(path).unlink()  # which is written after the lines
        with pytest.raises(InputError, match="no ledger"):
            ledger.summary()
        assert not fit(ledger).recognised
        assert totals(path) == [(0.25, 1e-5)]


@pytest.mark.skipif(sys.platform != "linux", reason="reads the names of open files in /proc")
def test_recorded_on_the_disk_before_it_returns(path, monkeypatch):
    synced = []

    def watched(file):
        name = os.readlink(f"/proc/self/fd/{file}")
        assert Path(name).is_dir() or Path(name).read_bytes()
        synced.append((name, path.read_bytes()))

    monkeypatch.setattr(os, "fsync", watched)
    before = b""
    for _ in range(2):
        fit(capped(path))
        name = path.resolve()
        after = path.read_bytes()
        draft = f"{seal_of(path)}.new"
        assert synced == [(str(name.parent), before), (str(name), after), (draft, after)]
        before = path.read_bytes()
        synced.clear()


def test_a_full_disk_leaves_the_ledger_as_it_was(path, monkeypatch):
    fit(capped(path))
    monkeypatch.setattr(os, "write", lambda file, data, write=os.write: write(file, data[:40]))
    refused_untouched(path, InputError, "no space left", lambda: fit(capped(path)))


@pytest.mark.skipif(sys.platform == "win32", reason="flushes no directories")
@pytest.mark.parametrize(("fails", "counted"), [("directory", 0.25), ("file", 0.5)])
def test_a_failed_flush_confirms_nothing_and_counts_what_was_written(
    path, monkeypatch, fails, counted
):
    def broken(file):
        if os.path.samestat(os.fstat(file), (path if fails == "file" else path.parent).stat()):
            raise OSError(5, "Input/output error")

    fit(capped(path))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", broken)
        with pytest.raises(InputError, match="input/output error"):
            fit(capped(path))
    assert LedgerFile(path).summary()["groups"][0]["epsilon"] == counted
    fit(capped(path))


def test_the_lock_ends_with_the_call_even_if_a_child_process_holds_a_copy(path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    copies = []

    def forked(file, data, write=os.write):
        copies.append(os.dup(file))
        return write(file, data)

    monkeypatch.setattr(os, "write", forked)
    fit(capped(path))
    with path.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(*copies)


def test_a_reservation_waits_until_nobody_else_has_the_file(path):
    fcntl = pytest.importorskip("fcntl")
    fit(capped(path))
    waiting = threading.Thread(target=lambda: fit(capped(path)))
    with path.open() as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        waiting.start()
        waiting.join(timeout=0.3)
        assert waiting.is_alive()
        assert len(path.read_bytes().splitlines()) == 2
    waiting.join(timeout=300)
    assert totals(path) == [(0.5, 2e-5)]


WORKER = """
import os, sys
from privtraj.base.errors import BudgetError
from privtraj.privacy.ledger_file import LedgerFile
path, cap, processes, times = sys.argv[1], *map(int, sys.argv[2:])
for _ in range(processes - 1):
    if not os.fork():
        break
ledger = LedgerFile(path, cap_epsilon=cap, cap_delta=0.0)
for _ in range(times):
    try:
        line = ledger.reserve(bytes(32), 1.0, 0.0, "add-remove", "a fit").id
    except BudgetError:
        line = "refused"
    os.write(1, line.encode() + b"\\n")
"""
needs_posix = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")


def workers(path, *numbers):
    command = [sys.executable, "-c", WORKER, str(path), *map(str, numbers)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
@needs_posix
def test_processes_at_once_share_one_cap(path):
    answers = workers(path, 3, 8, 1).communicate()[0].split()
    confirmed = sorted(set(answers) - {"refused"})
    entries = LedgerFile(path).summary()["entries"]
    assert (len(confirmed), answers.count("refused")) == (3, 5)
    assert sorted(entry["id"] for entry in entries) == confirmed
    assert totals(path) == [(3.0, 0.0)]


KILLS = int(os.environ.get("PRIVTRAJ_KILLS", "3"))  # `make kills` asks for more


@pytest.mark.slow
@needs_posix
def test_whatever_was_confirmed_survives_a_kill(path):
    rng = random.Random(0)
    confirmed = []
    for rounds, pause in enumerate([0.0, *(rng.uniform(0, 0.1) for _ in range(KILLS - 1))], 1):
        process = workers(path, 10**6, 1, 10**6)
        confirmed += [process.stdout.readline().strip()]
        time.sleep(pause)
        process.send_signal(signal.SIGKILL)
        confirmed += process.stdout.read().split()
        assert process.wait() == -signal.SIGKILL
        process.stdout.close()
        recorded = [entry["id"] for entry in LedgerFile(path).summary()["entries"]]
        assert set(confirmed) <= set(recorded)
        # A kill can fall between the record and the print, once per round.
        assert len(recorded) <= len(confirmed) + rounds
        assert totals(path) == [(float(len(recorded)), 0.0)]
        sealed = sealed_lines(path)
        assert len(recorded) <= sealed <= len(recorded) + 1  # and a header
    assert fit(LedgerFile(path), bytes(32), delta=0.0).left_epsilon == 1e6 - len(recorded) - 0.25


class Killed(BaseException):
    """The end of the process, at a call of the system."""


def _killing(monkeypatch, number, how):
    """The call of that number to change the disk is the last: not made, half made, or just made."""
    calls = iter(range(10**6))

    def last(call):
        def made(*args, **options):
            if next(calls) != number:
                return call(*args, **options)
            if how == "half" and call is real["write"]:
                call(args[0], args[1][: len(args[1]) // 2])
            if how == "after":
                call(*args, **options)
            raise Killed

        return made

    real = {name: getattr(os, name) for name in ("open", "ftruncate", "write", "fsync", "replace")}
    for name, call in real.items():
        monkeypatch.setattr(os, name, last(call))


@pytest.mark.parametrize("how", ["before", "half", "after"])
@pytest.mark.parametrize("had", [0, 2])
def test_a_kill_at_any_call_of_the_system_is_recovered_from(path, monkeypatch, had, how):
    ledger, points = capped(path, 100.0), 0
    for number in range(100):
        path.unlink(missing_ok=True)
        seal_of(path).unlink(missing_ok=True)
        before = [fit(ledger).id for _ in range(had)]
        with monkeypatch.context() as patch:
            _killing(patch, number, how)
            try:
                fit(ledger)
                break
            except Killed:
                points += 1
        following = fit(ledger).id
        ids = [entry["id"] for entry in LedgerFile(path).summary()["entries"]]
        assert ids[:had] == before
        assert ids[-1] == following
        assert len(ids) in (had + 1, had + 2)
        assert totals(path) == [(0.25 * len(ids), pytest.approx(1e-5 * len(ids)))]
        assert sealed_lines(path) == len(ids) + 1
    assert points >= 6


# What is not a ledger, or no longer ---------------------------------------------------------


def three_fits(path):
    for digest in (FIRST, SECOND, THIRD):
        fit(capped(path, 10.0), digest, epsilon=0.5)
    return path.read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize("line", range(3))
def test_an_edit_before_the_last_line_is_noticed(path, line):
    lines = three_fits(path)
    old, new = (b"0.5", b"0.1") if line else (b"add-remove", b"replace-one")
    assert old in lines[line]
    lines[line] = lines[line].replace(old, new)
    path.write_bytes(b"".join(lines))
    for call in (LedgerFile(path).summary, lambda: fit(LedgerFile(path))):
        noticed = max(line + 1, 2)  # the header has no hash but in the line after it
        refused_untouched(path, InputError, rf"changed by hand \(line {noticed} ", call)


@pytest.mark.parametrize("line", [1, 2])
def test_a_removed_line_is_noticed(path, line):
    lines = three_fits(path)
    path.write_bytes(b"".join(lines[:line] + lines[line + 1 :]))
    with pytest.raises(InputError, match="changed by hand"):
        LedgerFile(path).summary()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"epsilon": 0.5', b'"epsilon": NaN'),
        (b'"epsilon": 0.5', b'"epsilon": -5'),
        (b'"epsilon": 0.5', b'"epsilon": 1' + b"0" * 400),
        (b'"delta": 1e-05', b'"delta": "none"'),
        (b'"group": 0', b'"group": "mine"'),
        (b'"kind": "reserved"', b'"kind": "forgiven"'),
        (b'"what"', b'"wat"'),
        (b"{", b"["),
        (b"a fit", b"\xff fit"),
    ],
)
def test_a_last_line_that_cannot_be_is_noticed(path, old, new):
    *lines, last = three_fits(path)
    assert old in last
    path.write_bytes(b"".join([*lines, last.replace(old, new, 1)]))
    with pytest.raises(InputError, match=r"changed by hand \(line 4 "):
        fit(LedgerFile(path))


def deep(levels):
    value = "x"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "forged",
    [
        {"id": {}},
        {"id": []},
        {"time": 1},
        {"what": deep(40)},
        {"what": "x" * 20_000},
        {"group": {}},
    ],
)
def test_a_forged_line_with_hashes_of_its_own_is_answered_in_a_sentence(path, forged):
    """The hashes have no key: whoever makes a ledger makes them."""
    *lines, last = three_fits(path)
    values = json.loads(last) | forged
    del values["self"]
    path.write_bytes(b"".join([*lines, ledger_file._with_self(ledger_file._line(values)), b"\n"]))
    with pytest.raises(InputError, match=r"changed by hand \(line 4 "):
        LedgerFile(path).summary()


def test_a_line_nested_beyond_all_measure_is_answered_in_a_sentence(path):
    lines = three_fits(path)
    path.write_bytes(b"".join([*lines, b"[" * 10**6, b"\n"]))
    with pytest.raises(InputError, match=r"changed by hand \(line 5 "):
        LedgerFile(path).summary()


@pytest.mark.slow
def test_every_byte_of_the_last_line_is_covered(path):
    """A number that stays a number, a letter of a name: nothing else would notice."""
    *lines, last = three_fits(path)
    for place in range(len(last) - 1):
        other = bytes([last[place] ^ 1])
        path.write_bytes(b"".join([*lines, last[:place], other, last[place + 1 :]]))
        with pytest.raises(InputError, match=r"changed by hand|lost lines"):
            LedgerFile(path).summary()
    path.write_bytes(b"".join([*lines, last.replace(b'"epsilon": 0.5', b'"epsilon": 0.1')]))
    with pytest.raises(InputError, match=r"changed by hand \(line 4 "):
        fit(LedgerFile(path))


# Lines that were cut off ----------------------------------------------------------------------


def _emptied(path, lines):
    path.write_bytes(b"")


def _removed(path, lines):
    path.unlink()


def _cut(path, lines):
    path.write_bytes(b"".join(lines[:-1]))


def _torn(path, lines):
    path.write_bytes(b"".join(lines)[:-20])


def _only_a_header(path, lines):
    path.write_bytes(lines[0])


def _replaced(path, lines):
    path.unlink()
    seal = seal_of(path).read_bytes()
    seal_of(path).unlink()
    three_fits(path)
    seal_of(path).write_bytes(seal)


LOST = [_emptied, _removed, _cut, _torn, _only_a_header, _replaced]


@pytest.mark.parametrize("lose", LOST)
def test_lost_lines_are_noticed_by_the_seal(path, lose):
    lines = three_fits(path)
    lose(path, lines)
    before = path.read_bytes() if path.exists() else None
    for call in (LedgerFile(path).summary, lambda: fit(capped(path, 10.0))):
        with pytest.raises(InputError, match=r"has lost lines that its seal 'house.ledger.seal'"):
            call()
        assert (path.read_bytes() if path.exists() else None) == before
    path.write_bytes(b"".join(lines))
    fit(capped(path, 10.0))


@pytest.mark.parametrize("lose", LOST)
def test_lost_lines_are_noticed_by_a_noted_code_without_the_seal(path, lose):
    lines = three_fits(path)
    code = LedgerFile(path).summary()["code"]
    assert f"Code: {code} (note it elsewhere" in LedgerFile(path).describe()
    lose(path, lines)
    seal_of(path).unlink()
    caps = {"cap_epsilon": 10.0, "cap_delta": 1e-4}
    for call in (
        LedgerFile(path, ledger_code=code).summary,
        lambda: fit(LedgerFile(path, **caps, ledger_code=code)),
    ):
        with pytest.raises(InputError, match=r"does not go on from the code .*ledger_code"):
            call()
    path.write_bytes(b"".join(lines))
    fit(LedgerFile(path, ledger_code=f" {code}\n"))
    assert LedgerFile(path, ledger_code=code).summary()["code"] != code  # it went on from there


@pytest.mark.parametrize("code", ["", "5", "5-xyz", "0-" + "0" * 16, "5-" + "0" * 15, 5, "-1-0"])
def test_what_is_no_code(path, code):
    with pytest.raises(InputError, match="must be a code such as 5-0123456789abcdef"):
        LedgerFile(path, ledger_code=code)


def test_a_seal_behind_the_ledger_is_that_of_a_crash_and_no_seal_is_no_loss(path):
    three_fits(path)
    old = seal_of(path).read_bytes()
    fit(capped(path, 10.0))
    seal_of(path).write_bytes(old)
    fit(capped(path, 10.0))
    seal_of(path).unlink()
    assert len(LedgerFile(path).summary()["entries"]) == 5
    assert not seal_of(path).exists()
    fit(capped(path, 10.0))
    assert sealed_lines(path) == 7


def test_a_ledger_goes_on_where_no_seal_can_be_written(path):
    seal_of(path).mkdir()
    three_fits(path)
    assert totals(path) == [(1.5, 3e-5)]


def test_links_to_a_ledger_share_its_seal(path):
    three_fits(path)
    link = path.with_name("link")
    link.symlink_to(path)
    fit(LedgerFile(link))
    path.write_bytes(b"")
    with pytest.raises(InputError, match="lost lines"):
        LedgerFile(link).summary()


FORMER = Path(__file__).with_name("version_1.ledger")  # as privtraj 0.1 wrote it


def test_a_ledger_of_version_1_is_read_and_goes_on(path):
    path.write_bytes(FORMER.read_bytes())
    summary = LedgerFile(path).summary()
    assert [entry["state"] for entry in summary["entries"]] == [FITTED, CHARGED]
    fit(LedgerFile(path), epsilon=0.125)
    fit(LedgerFile(path), epsilon=0.125)
    assert path.read_bytes().startswith(FORMER.read_bytes())
    assert len(LedgerFile(path).summary()["entries"]) == 4
    *lines, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines, last.replace(b'"epsilon": 0.125', b'"epsilon": 0.025')]))
    with pytest.raises(InputError, match=r"changed by hand \(line 6 "):
        LedgerFile(path).summary()
    bare = re.sub(rb', "self": "[0-9a-f]{64}"', b"", last)
    path.write_bytes(b"".join([*lines, bare]))  # a line of version 1 follows none of version 2
    with pytest.raises(InputError, match=r"changed by hand \(line 6 "):
        LedgerFile(path).summary()


@needs_posix
@pytest.mark.parametrize("linked", [False, True], ids=["itself", "link"])
@pytest.mark.parametrize("kind", ["a directory", "a pipe", "a socket", "a device"])
def test_a_special_file_is_refused_at_once(tmp_path, kind, linked, monkeypatch):
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    place = Path("/dev/null") if kind == "a device" else Path("special")
    with socket.socket(socket.AF_UNIX) as server:
        if kind == "a directory":
            place.mkdir()
        elif kind == "a pipe":
            os.mkfifo(place)
        elif kind == "a socket":
            server.bind(str(place))
        if linked:
            Path("link").symlink_to(place)
            place = Path("link")
        for call in (
            LedgerFile(place).summary,
            lambda: fit(capped(place)),
            lambda: capped(place).charge(0.1, 0.0, "add-remove", "x"),
            lambda: LedgerFile(place).settle("0" * 16, spent_epsilon=0.1, model=MODEL),
        ):
            shown = kind if kind == "a directory" else "a pipe, a socket or a device"
            with pytest.raises(InputError, match=f"'{place}' is {shown}, which keeps no lines"):
                call()


@pytest.mark.parametrize(
    "content",
    [b"id,time,x\n1,2,3\n", b"no newline", b"{}", b'{"privtraj ledger": 3, "salt": "', b"\x00" * 9],
)
def test_other_files_are_refused_and_left_alone(path, content):
    path.write_bytes(content)
    refused_untouched(path, InputError, "is not a ledger", lambda: fit(capped(path)))
    refused_untouched(path, InputError, "is not a ledger", LedgerFile(path).summary)


def test_places_without_a_ledger_are_explained(tmp_path):
    missing = tmp_path / "missing"
    with pytest.raises(InputError, match="there is no ledger"):
        LedgerFile(missing).summary()
    with pytest.raises(InputError, match="there is no ledger"):
        capped(missing).settle("0" * 16, spent_epsilon=0.1, model=MODEL)
    assert not missing.exists()
    for call in (LedgerFile(missing / "x").describe, lambda: fit(capped(missing / "x"))):
        with pytest.raises(InputError, match="there is no directory"):
            call()
    with pytest.raises(InputError, match="is a directory"):
        fit(capped(tmp_path))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may do anything")
def test_files_out_of_reach_are_explained(path):
    fit(capped(path))
    path.chmod(0o400)
    LedgerFile(path).summary()
    refused_untouched(path, InputError, "permission denied", lambda: fit(capped(path)))
    path.chmod(0o000)
    with pytest.raises(InputError, match="permission denied"):
        LedgerFile(path).summary()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_only_its_owner_may_read_a_new_ledger(path):
    fit(capped(path))
    assert path.stat().st_mode & 0o077 == 0


# For people ---------------------------------------------------------------------------------


def test_describes_itself_rounded_to_the_safe_side(path):
    ledger = capped(path, 2.0)
    reservation = ledger.reserve(FIRST, 0.333333, 1e-5, "add-remove", "one\nfit")
    ledger.settle(reservation.id, spent_epsilon=0.222222, model=MODEL)
    text = LedgerFile(path).describe()
    assert "whether one person is in the data at all (add-remove)" in text
    assert "Cap: epsilon 2, delta 0.0001." in text
    assert "Total: epsilon 0.3334 and delta 1e-05 spent, epsilon 1.666 and delta 9e-05 left" in text
    assert "one fit  fitted: exact epsilon 0.2223, model abababababab" in text
    assert "group" not in text
    fit(ledger, SECOND, epsilon=0.5, new_people=True)
    ledger.charge(0.25, 0.0, "add-remove", "elsewhere")
    text = LedgerFile(path).describe()
    assert "Group 1: epsilon 0.75 and" in text
    assert "every  elsewhere  charged: released elsewhere" in text
    assert "1      a fit      reserved: no model was recorded, counts all the same" in text
