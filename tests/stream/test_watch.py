"""The running service: no kill, copy, full disk or clock spends twice, or releases half a batch."""

import json
import os
import resource
import secrets
import signal
import time
import warnings
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

import privtraj as pt
from killing import killed_at
from privtraj import cli
from privtraj.base.errors import InputError
from privtraj.privacy import ledger_file
from privtraj.privacy.ledger_file import FITTED, LedgerFile
from privtraj.stream.people import People, new_key
from privtraj.stream.watch import CERTIFICATE, MODEL, Once, Stream

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.usefixtures("fast"),
]
FILES = ("stream/watch.py", "stream/people.py", "ledger_file.py", "base/files.py")
CONTENTS = ["a" * 64, "b" * 64]


def batch(k):
    """Twenty people, five of whom were in the batch before."""
    ids = [f"p{15 * k + i}" for i in range(20)]
    points, options = np.linspace(0, 1, 20), {"bounds": [(0, 1)], "time_range": (0, 5)}
    return pt.Snapshots.from_arrays(np.arange(20) % 5 + k / 100, points, person=ids, **options)


@pytest.fixture(scope="module")
def small():
    """A model, of which others are made that differ in a word."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about so few people
        return pt.TrajectorySynthesizer(1.0, 1e-5, cells=2).fit(batch(0))


class Service:
    """What a copy of the service does with two batches; its fits take no time."""

    def __init__(self, folder, small):
        self.folder, self.out, self.small = folder, folder / "out", small
        self.out.mkdir(parents=True, exist_ok=True)
        if not (folder / "key").exists():
            new_key(folder / "key")
        ledger = LedgerFile(folder / "ledger", cap_epsilon=1.0, cap_delta=0.5)
        self.stream = Stream(self.out, ledger)

    def run(self):
        with self.stream.alone() as alone:
            assert alone
            for k, content in enumerate(CONTENTS):
                self.stream.take(f"{k}.csv", content, lambda _, ledger, k=k: self.made(k, ledger))

    def made(self, k, ledger, returning="skip"):
        people = People.open(self.folder / "people", self.folder / "key", returning=returning)
        _, entry = people.admit(batch(k), ledger, 1.0, 1e-5, "add-remove", "a fit")
        certificate = replace(self.small.certificate, declared={"title": secrets.token_hex(4)})
        model = replace(self.small, certificate=certificate).sealed()
        ledger.settle(entry, spent_epsilon=model.certificate.epsilon, model=model.sha256)
        return model

    def check_drafts(self):
        """Whatever is whole on the disk is named beside its reservation, seen or not."""
        states = [*self.folder.glob("ledger.*.begun"), *self.folder.glob("ledger.watch")]
        begun = [one for state in states for one in json.loads(state.read_text())["batches"]]
        named = {one.get("model"): one["entry"] for one in begun}
        for draft in [*self.folder.glob(".*.privtraj"), *self.out.glob(f".*/*{MODEL}")]:
            entries = LedgerFile(self.folder / "ledger").summary()["entries"]
            with suppress(InputError):  # half of one
                assert named[pt.load(draft).sha256] in {one["id"] for one in entries}

    def check(self, finished):
        """All that is released is whole and recorded, and nothing is spent twice."""
        path = self.folder / "ledger"
        entries = LedgerFile(path).summary()["entries"] if LedgerFile(path).begun else []
        recorded = {one["model"] for one in entries if one["state"] == FITTED}
        released = sorted(one for one in self.out.iterdir() if not one.name.startswith("."))
        assert len(entries) <= 2
        self.check_drafts()
        for folder in released:
            assert {one.name for one in folder.iterdir()} == {MODEL, CERTIFICATE}
            model = pt.load(folder / MODEL)
            assert model.sha256 in recorded
            stated = json.loads((folder / CERTIFICATE).read_text())
            assert stated["model_sha256"] == model.sha256
        if finished:
            assert [one.name for one in released] == ["0001", "0002"]
            groups = LedgerFile(path).summary()["groups"]
            assert [group["epsilon"] for group in groups] == [1.0, 1.0]
            known = People.open(self.folder / "people", self.folder / "key").summary()
            assert known == {"people": 35, "batches": 2, "in_several": 0}
            assert not list(self.out.glob(".*"))
            assert not list(self.folder.glob(".*.watch"))


@pytest.mark.parametrize("step", [301, pytest.param(29, marks=pytest.mark.thorough)])
def test_a_kill_between_any_two_lines_is_finished_by_the_next_step(step, tmp_path, small):
    for number in range(step, 10**5, step):
        service = Service(tmp_path / str(number), small)
        ended = killed_at(number, service.run, FILES)
        service.check(ended)
        killed_at(number // 2, service.run, FILES)  # and the one that would finish it
        service.check(finished=False)
        service.run()
        service.check(finished=True)
        if ended:
            break
    assert number > 2 * step


@pytest.mark.parametrize("limit", [0, 300, 1500, 9000])
def test_a_full_disk_is_finished_when_there_is_room(limit, tmp_path, small):
    service = Service(tmp_path / "house", small)
    child = os.fork()
    if child == 0:  # no file may grow beyond the limit: the system refuses, whoever writes
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            service.run()
        except (OSError, InputError):
            os._exit(3)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    service.check(finished=False)
    service.run()
    service.check(finished=True)


def test_a_second_copy_does_nothing(tmp_path, small):
    service, other = (Service(tmp_path / "house", small) for _ in range(2))
    with service.stream.alone() as first, other.stream.alone() as second:
        assert (first, second) == (True, False)
    service.run()
    other.run()
    service.check(finished=True)


def test_a_clock_that_jumps_changes_nothing(tmp_path, small, monkeypatch):
    years = iter(["2030", "1999", "2026", "1970", "2040", "2001"])
    monkeypatch.setattr(ledger_file, "_now", lambda: f"{next(years)}-01-01T00:00:00+00:00")
    monkeypatch.setattr(time, "time", lambda: -1e9)
    service = Service(tmp_path / "house", small)
    service.run()
    service.run()
    service.check(finished=True)


def test_a_batch_that_is_gone_before_it_is_finished_holds_up_the_others(tmp_path, small):
    service = Service(tmp_path / "house", small)

    def stops(_, ledger):
        service.made(0, ledger)
        raise MemoryError

    with pytest.raises(MemoryError):
        service.stream.take("0.csv", CONTENTS[0], stops)
    with pytest.raises(InputError, match=r"'0\.csv' is begun and not finished: put it back"):
        service.stream.take("1.csv", CONTENTS[1], stops)
    with suppress(InputError):
        service.run()
    service.check(finished=True)


def test_a_draft_that_was_exchanged_is_not_released(tmp_path, small, monkeypatch):
    service = Service(tmp_path / "house", small)

    def stops(*_, **__):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(LedgerFile, "settle", stops)
        with pytest.raises(MemoryError):
            service.run()
    (draft,) = service.out.glob(f".*/{MODEL}")
    service.small.save(draft, force=True)
    with pytest.raises(InputError, match=r"the model of '0\.csv' is paid for and lost"):
        service.run()


@pytest.mark.parametrize("step", [397, pytest.param(31, marks=pytest.mark.thorough)])
def test_a_fit_that_was_killed_is_finished_by_the_same_command(step, tmp_path, small):
    for number in range(step, 10**5, step):
        service = Service(tmp_path / str(number), small)
        out = service.folder / "model.privtraj"

        def fit(service=service, out=out):
            once = Once(out, service.stream.ledger)
            return once.write("a" * 64, False, lambda ledger: service.made(0, ledger))

        ended = killed_at(number, fit, FILES)
        service.check_drafts()
        model = pt.load(out) if out.exists() else fit()
        entries = LedgerFile(service.folder / "ledger").summary()["entries"]
        assert [one["model"] for one in entries] == [model.sha256] == [pt.load(out).sha256]
        with pytest.raises(InputError, match="already exists"):
            fit()
        if ended:
            break
    assert number > 2 * step
    assert {one.name for one in service.folder.iterdir()} == {
        *("key", "ledger", "ledger.seal", "model.privtraj", "out", "people"),
    }
    with pytest.raises(InputError, match="20 of 20 people are in an earlier batch"):  # another fit
        Once(service.folder / "b.privtraj", service.stream.ledger).write(
            "a" * 64, False, lambda ledger: service.made(0, ledger, returning="refuse")
        )
    assert len(list(service.folder.iterdir())) == 6  # a refusal leaves nothing


# The command ----------------------------------------------------------------------------------


def incoming(folder, n):
    rng = np.random.default_rng(0)
    folder.mkdir()
    for k in range(n):
        rows = [f"p{60 * k + i},{k + rng.random()},{rng.random()}" for i in range(65)]
        (folder / f"{k}.csv").write_text("\n".join(["id,t,x", *rows, ""]))
        (folder / f"{k}.toml").write_text(f"time_range = [{k}, {k + 1}]\n")


def command(folder, *more):
    files = {"--ledger": "l", "--people": "p", "--people-key": "key", "--out": "out"}
    words = ["watch", str(folder / "in"), "--time", "t", "--person", "id", "--feature", "x", "0"]
    words += ["1", "--time-range", "0", "1", "--epsilon", "1", "--delta", "1e-5", "--cells", "2"]
    words += ["--cap-epsilon", "1", "--cap-delta", "1e-3", "--returning", "skip", "--no-report"]
    for option, name in files.items():
        words += [option, str(folder / name)]
    return [*words, "--once", "--yes", "--json", *more]


def test_every_file_is_taken_once_and_a_bad_one_holds_up_nobody(tmp_path, capsys):
    incoming(tmp_path / "in", 2)
    (tmp_path / "in" / "0b.csv").write_bytes((tmp_path / "in" / "0.csv").read_bytes())
    (tmp_path / "in" / "0c.csv").write_text("id,t,x\np1,0,1\n")
    (tmp_path / "out").mkdir()
    assert cli.main(["people", "--new-key", str(tmp_path / "key")]) == 0
    capsys.readouterr()
    assert cli.main(command(tmp_path)) == 2
    said = capsys.readouterr()
    told = json.loads(said.out)
    assert [one[-4:] for one in told["released"]] == ["0001", "0002"]
    assert list(told["refused"]) == ["0c.csv"]
    assert "5 of 65 people are in an earlier batch (for your eyes only): what was" in said.err
    model = pt.load(tmp_path / "out" / "0002" / MODEL)
    assert model.verify() == pytest.approx(1, abs=1e-6)
    released = b"".join(one.read_bytes() for one in (tmp_path / "out").rglob("*.json"))
    assert b"of 65" not in released
    (tmp_path / "in" / "0c.csv").unlink()
    assert cli.main(command(tmp_path)) == 0
    assert json.loads(capsys.readouterr().out)["released"] == []
