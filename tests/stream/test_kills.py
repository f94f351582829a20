"""`fit`, `extend` and `watch` killed at random moments, in two copies, on a full disk, with a clock
that jumps: nothing is spent twice, nothing released unrecorded, every restart finishes.

Real signals to real processes, which a warm one forks (`warm`), at moments that are spread evenly
over the time that the command takes.  `make kills` asks for 200 of each.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import privtraj as pt
from privtraj.base.errors import InputError
from privtraj.privacy.ledger_file import LedgerFile
from privtraj.stream.people import People, new_key
from privtraj.stream.watch import CERTIFICATE, MODEL

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
]
KILLS = int(os.environ.get("PRIVTRAJ_KILLS", "6"))  # `make kills` asks for more
COMMANDS = ["fit", "extend", "watch"]


class Warm:
    """Commands in processes that are forked from one that has all imported."""

    def __init__(self):
        here = Path(__file__).parents[1] / "warm.py"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen([sys.executable, str(here)], **pipes)

    def asked(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def start(self, house, limit=None, clock=None):
        return self.asked(words=house.words, said=str(house.said), limit=limit, clock=clock)

    def wait(self, pid):
        return self.asked(wait=pid)


@pytest.fixture(scope="module")
def warm():
    one = Warm()
    yield one
    one.process.stdin.close()
    one.process.wait()


class House:
    """The files of one command, which releases one batch or two."""

    def __init__(self, folder, command, first=None):
        """first: a house with a model that is extended."""
        self.folder, self.command = folder, command
        if first is not None:
            shutil.copytree(first.folder, folder)
        else:
            (folder / "in").mkdir(parents=True)
            (folder / "out").mkdir()
            new_key(folder / "key")
        rng = np.random.default_rng(0)
        for k in range(2):  # five of the second are in the first
            rows = [f"p{60 * k + i},{k + rng.random()},{rng.random()}" for i in range(65)]
            (folder / "in" / f"{k}.csv").write_text("\n".join(["id,t,x", *rows, ""]))
            (folder / "in" / f"{k}.toml").write_text(f"time_range = [{k}, {k + 1}]\n")
        self.said = folder / "said"

    @property
    def words(self):
        at = self.folder
        if self.command == "extend":
            own = ["extend", at / "out/0.privtraj", at / "in/1.csv", "--time-range", 1, 2]
        else:
            data = {"fit": ["fit", at / "in/0.csv"], "watch": ["watch", at / "in", "--once"]}
            own = [*data[self.command], "--time", "t", "--feature", "x", 0, 1, "--epsilon", 1]
            own += ["--delta", 1e-5, "--cells", 2, "--windows", 2, "--particles", 16, "--yes"]
            own += ["--time-range", 0, 1]
        out = {"fit": at / "out/0.privtraj", "extend": at / "out/1.privtraj", "watch": at / "out"}
        own += ["--out", out[self.command], *["--no-report"] * (self.command == "watch")]
        own += ["--ledger", at / "l", "--people", at / "p", "--people-key", at / "key"]
        own += ["--cap-epsilon", 1, "--cap-delta", 1e-3, "--returning", "skip", "--person", "id"]
        return [str(word) for word in (*own, "--json")]

    def check(self, finished=False):
        """What is released is whole and recorded, and nothing is spent twice."""
        ledger, batches = LedgerFile(self.folder / "l"), 1 if self.command == "fit" else 2
        summary = ledger.summary() if ledger.begun else {"entries": [], "groups": []}
        released = sorted(one for one in (self.folder / "out").iterdir() if one.name[0] != ".")
        assert len(summary["entries"]) <= batches
        assert all(one["epsilon"] == 1.0 for one in summary["groups"])
        recorded = [one["model"] for one in summary["entries"] if one["model"] is not None]
        for k, one in enumerate(released):
            model = pt.load(one / MODEL if one.is_dir() else one)
            assert model.sha256 == recorded[k]
            if one.is_dir():
                assert {file.name for file in one.iterdir()} == {MODEL, CERTIFICATE}
                stated = json.loads((one / CERTIFICATE).read_text())
                assert stated["model_sha256"] == model.sha256
        if finished:
            assert len(released) == len(recorded) == len(summary["groups"]) == batches
            known = People.open(self.folder / "p", self.folder / "key").summary()
            assert known == {"people": 60 * batches + 5, "batches": batches, "in_several": 0}
            assert not list((self.folder / "out").glob(".*"))
            assert not list(self.folder.glob(".*"))


@pytest.fixture(scope="module")
def first(warm, tmp_path_factory):
    """A model to extend."""
    house = House(tmp_path_factory.mktemp("first") / "house", "fit")
    assert warm.wait(warm.start(house)) == 0
    house.check(finished=True)
    return house


@pytest.fixture
def house(request, warm, first, tmp_path):
    """Makes houses of a command; `seconds` that it takes when nothing happens."""

    def make(name):
        return House(tmp_path / name, command, first if command == "extend" else None)

    command = request.param
    began = time.monotonic()
    assert warm.wait(warm.start(make("undisturbed"))) == 0
    make.seconds = time.monotonic() - began
    return make


def ended(house, code):
    """Whether the command said that it did what was asked, now or before."""
    return code == 0 or (code == 2 and "already exists" in house.said.read_text())


@pytest.mark.parametrize("house", COMMANDS, indirect=True)
def test_kills_at_random_moments(house, warm, capsys, request):
    rng, kills, houses, again = random.Random(request.node.name), 0, 0, []
    while kills < KILLS:
        one, houses, own = house(f"house {houses}"), houses + 1, 0
        while True:
            pid = warm.start(one)
            if kills < KILLS and rng.random() < 0.7:
                time.sleep(rng.uniform(0, house.seconds))
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            code = warm.wait(pid)
            if code == -signal.SIGKILL:
                kills, own = kills + 1, own + 1
                one.check()
                continue
            assert ended(one, code), one.said.read_text()
            one.check(finished=True)
            again.append(own)
            break
        shutil.rmtree(one.folder)
    with capsys.disabled():
        print(f" {kills} kills in {houses} streams, up to {max(again)} of one; ", end="")


@pytest.mark.parametrize("house", COMMANDS, indirect=True)
def test_two_copies_at_once_of_which_one_is_killed(house, warm, request):
    rng = random.Random(request.node.name)
    for number in range(1 + KILLS // 8):
        one = house(f"house {number}")
        other = House.__new__(House)
        vars(other).update(vars(one), said=one.folder / "said too")
        pids = [warm.start(one)]
        time.sleep(rng.uniform(0, house.seconds))
        pids.append(warm.start(other))
        time.sleep(rng.uniform(0, house.seconds))
        with suppress(ProcessLookupError):
            os.kill(rng.choice(pids), signal.SIGKILL)
        codes = [warm.wait(pid) for pid in pids]
        for each, code in zip((one, other), codes, strict=True):
            text = each.said.read_text()
            waits = "another copy" in text
            assert code == -signal.SIGKILL or ended(each, code) or waits, (code, text)
        one.check()
        assert ended(one, warm.wait(warm.start(one)))
        one.check(finished=True)


@pytest.mark.parametrize("house", COMMANDS, indirect=True)
def test_kills_by_a_full_disk(house, warm, request):
    """No file may grow beyond a limit, which is another each time but leaves room for what is said:
    one sentence, nothing lost."""
    rng, stopped = random.Random(request.node.name), 0
    for number in range(2 + KILLS // 4):
        one = house(f"house {number}")
        code = warm.wait(warm.start(one, limit=int(2 ** rng.uniform(11, 15))))
        text = one.said.read_text()
        assert code in (0, 2), (code, text)
        assert "Traceback" not in text
        stopped += code == 2
        one.check()
        code = warm.wait(warm.start(one))
        assert ended(one, code), one.said.read_text()
        one.check(finished=True)
    assert stopped


@pytest.mark.parametrize("house", ["watch"], indirect=True)
def test_kills_beside_a_clock_that_jumps(house, warm, request):
    rng = random.Random(request.node.name)
    for number in range(1 + KILLS // 8):
        one = house(f"house {number}")
        for _ in range(3):
            pid = warm.start(one, clock=rng.choice([-1e9, -86400.0, 3600.0, 1e9]))
            time.sleep(rng.uniform(0, house.seconds))
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            warm.wait(pid)
            one.check()
        assert ended(one, warm.wait(warm.start(one, clock=-1e9)))
        one.check(finished=True)


def test_a_model_that_is_no_file_of_the_ledger_is_not_taken_for_one(first, tmp_path):
    """The check itself sees a model that nobody recorded."""
    house = House(tmp_path / "house", "extend", first)
    shutil.copy(*(house.folder / "out" / f"{k}.privtraj" for k in range(2)))
    with pytest.raises((AssertionError, IndexError, InputError)):
        house.check()
