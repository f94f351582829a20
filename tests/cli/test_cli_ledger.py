"""`fit --ledger` and `privtraj ledger`: fits add up, whatever happens to them on the way."""

import hashlib
import json
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pytest

import privtraj as pt
from privtraj import cli
from privtraj.export import tables as export_tables
from privtraj.model.model import TrajectoryModel
from privtraj.privacy.guard import Guard
from privtraj.privacy.ledger_file import FITTED, RESERVED, LedgerFile, seal_of

PEOPLE = 60

# The shape that the other tests of the command line have: compiling is what takes time.
SHAPE = ["--measure", "counts", "--particles", "24", "--cells", "6", "--windows", "bins", "--yes"]
BOUNDS = ["--feature", "height", "40", "210", "--feature", "weight", "1", "140"]
TIMES = ["--time-range", "0", "20", "--bins", "5"]
CAPS = ["--cap-epsilon", "1", "--cap-delta", "1e-4"]

needs_posix = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")


def _table():
    """Values and names that cannot turn up in a ledger by chance."""
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "id": [f"person-{k:03d}" for k in range(PEOPLE)],
            "age": rng.uniform(0, 20, PEOPLE),
            "height": rng.uniform(50, 200, PEOPLE),
            "weight": rng.uniform(2, 90, PEOPLE),
        }
    )


@pytest.fixture(scope="module")
def clinic(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "clinic.csv"
    export_tables.write_table(_table(), path)
    return path


@pytest.fixture
def ledger(tmp_path):
    return tmp_path / "clinic.ledger"


@pytest.fixture
def fit(clinic, ledger):
    """Function: name of a model, options -> exit code of a fit with epsilon 0.4 of at most 1."""

    def run(name, *options, data=clinic, epsilon="0.4", times=TIMES, bounds=BOUNDS):
        out = ledger.with_name(f"{name}.privtraj")
        return cli.main([*_words(data, out, ledger, epsilon, times, bounds), *options])

    return run


def _words(data, out, ledger, epsilon="0.4", times=TIMES, bounds=BOUNDS):
    budget = ["--epsilon", epsilon, "--delta", "1e-5", "--ledger", str(ledger)]
    columns = ["--time", "age", "--person", "id", *bounds, *times]
    return ["fit", str(data), *columns, *budget, "--out", str(out), *SHAPE]


def _error(capsys):
    """The one sentence on stderr after a command that said nothing else."""
    shown = capsys.readouterr()
    assert shown.out == ""
    *notes, error = shown.err.splitlines()
    assert all(line.startswith("privtraj: note: ") for line in notes)
    assert error.startswith("privtraj: error: ")
    return error


def _summary(path):
    return LedgerFile(path).summary()


def _spent(path):
    (group,) = _summary(path)["groups"]
    return group["epsilon"]


def _content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# Adding up ------------------------------------------------------------------------------------


def test_fits_add_up_to_the_cap_and_no_further(fit, ledger, capsys):
    assert fit("one", *CAPS) == 0
    assert _spent(ledger) == 0.4
    assert fit("two") == 0  # the cap is remembered
    assert _spent(ledger) == 0.8
    before = _content(ledger.parent)
    capsys.readouterr()
    assert fit("three") == 2
    error = _error(capsys)
    assert "has epsilon 0.2 and delta 8e-05 left of 1 and 0.0001" in error
    assert "asks for 0.4 and 1e-05: lower epsilon" in error
    assert "--new-people" not in error
    assert _content(ledger.parent) == before
    models = {"one.privtraj", "two.privtraj"}
    assert set(before) == {"clinic.ledger", "clinic.ledger.seal", *models}
    assert fit("three", epsilon="0.2") == 0
    assert _summary(ledger)["groups"][0]["left_epsilon"] == 0
    assert fit("four", "--cap-epsilon", "2", "--cap-delta", "1e-4") == 0
    assert _summary(ledger)["cap_epsilon"] == 2


def test_every_model_is_named_by_its_hash(fit, ledger):
    assert fit("one", *CAPS) == 0
    assert fit("two") == 0
    models = [pt.load(ledger.with_name(f"{name}.privtraj")) for name in ("one", "two")]
    entries = _summary(ledger)["entries"]
    assert [entry["state"] for entry in entries] == [FITTED, FITTED]
    assert [entry["model"] for entry in entries] == [model.sha256 for model in models]
    assert [entry["spent_epsilon"] for entry in entries] == [
        model.certificate.epsilon for model in models
    ]
    assert entries[0]["fingerprint"] == entries[1]["fingerprint"]
    assert {entry["what"] for entry in entries} == {"fit of height, weight over age"}


def test_force_replaces_a_model_and_never_a_ledger(fit, ledger, capsys):
    assert fit("one", *CAPS) == 0
    assert fit("one", "--force") == 0
    assert _spent(ledger) == 0.8
    ledger.write_text("precious")
    before = _content(ledger.parent)
    capsys.readouterr()
    assert fit("one", "--force", *CAPS) == 2
    assert "is not a ledger" in _error(capsys)
    assert _content(ledger.parent) == before


# Whose records --------------------------------------------------------------------------------

SAME = {
    "the same": (lambda t: t, "csv", {}),
    "rows shuffled": (lambda t: t.take(np.random.default_rng(1).permutation(PEOPLE)), "csv", {}),
    "as Parquet": (lambda t: t, "parquet", {}),
    "as Arrow, columns turned": (lambda t: t.select(t.column_names[::-1]), "arrow", {}),
    "features turned": (lambda t: t, "csv", {"bounds": BOUNDS[4:] + BOUNDS[:4]}),
    "other bins": (lambda t: t, "csv", {"times": ["--time-range", "-3", "25", "--bins", "9"]}),
    "listed bins": (lambda t: t, "csv", {"times": ["--bin-times", "1", "5", "6"]}),
    "other bounds": (
        lambda t: t,
        "csv",
        {"bounds": ["--feature", "height", "0", "99.5", "--feature", "weight", "-10", "20"]},
    ),
    "all of it": (
        lambda t: t.take(np.arange(PEOPLE)[::-1]),
        "parquet",
        {"bounds": ["--feature", "weight", "0", "1", "--feature", "height", "0", "1"]},
    ),
}


@pytest.fixture(scope="module")
def started(clinic, tmp_path_factory):
    """The bytes of a ledger with one fit."""
    folder = tmp_path_factory.mktemp("started")
    words = _words(clinic, folder / "m.privtraj", folder / "ledger")
    assert cli.main([*words, *CAPS]) == 0
    return (folder / "ledger").read_bytes()


def _variant(path, change):
    export_tables.write_table(change(_table()), path)
    return path


@pytest.mark.parametrize("name", SAME)
def test_the_same_data_are_recognised(name, fit, started, ledger, tmp_path, capsys):
    """Recognised: that is what refuses to call the people new."""
    change, suffix, options = SAME[name]
    data = _variant(tmp_path / f"same.{suffix}", change)
    ledger.write_bytes(started)
    assert fit("m", "--new-people", "--yes", data=data, **options) == 2
    error = _error(capsys)
    assert "these records are in the ledger" in error
    assert "leave out --new-people" in error
    assert ledger.read_bytes() == started
    assert not ledger.with_name("m.privtraj").exists()


def _one_cell_changed(table):
    heights = table["height"].to_numpy().copy()
    heights[7] = np.nextafter(heights[7], 0)
    return table.set_column(2, "height", pa.array(heights))


def test_data_not_recognised_add_up_all_the_same(fit, started, ledger, tmp_path, capsys):
    ledger.write_bytes(started)
    other = _variant(tmp_path / "other.csv", _one_cell_changed)
    assert fit("two", data=other) == 0
    assert _spent(ledger) == 0.8
    first, second = _summary(ledger)["entries"]
    assert first["fingerprint"] != second["fingerprint"]
    third = _variant(tmp_path / "third.csv", lambda t: t.slice(1))
    capsys.readouterr()
    assert fit("three", data=third) == 2
    error = _error(capsys)
    assert "epsilon 0.2 and" in error
    assert "say --new-people if" in error


def test_new_people_have_a_budget_of_their_own(fit, started, ledger, tmp_path, capsys):
    ledger.write_bytes(started)
    other = _variant(tmp_path / "other.csv", _one_cell_changed)
    assert fit("two", "--new-people", data=other, epsilon="0.9") == 0
    assert [group["epsilon"] for group in _summary(ledger)["groups"]] == [0.4, 0.9]
    said = capsys.readouterr().out
    assert "Stated by the steward, and not checked: nobody in these records" in said
    assert "has their sum, epsilon 1.3 and" in said
    assert fit("three", data=other) == 2
    assert "epsilon 0.1 and" in _error(capsys)
    assert fit("three") == 0
    assert [group["epsilon"] for group in _summary(ledger)["groups"]] == [0.8, 0.9]


def test_nothing_of_the_data_is_in_the_ledger(fit, clinic, ledger, capsys):
    for name in ("one", "two", "three"):  # the last is refused
        fit(name, *CAPS)
    assert cli.main(["ledger", "show", str(ledger)]) == 0
    assert cli.main(["ledger", "show", str(ledger), "--json"]) == 0
    shown = capsys.readouterr()
    text = ledger.read_text() + shown.out + shown.err
    cells = clinic.read_text().replace('"', "").replace("\n", ",").split(",")
    secret = [cell for cell in cells if any(c.isdigit() for c in cell)]
    assert len(secret) == 4 * PEOPLE
    assert not any(cell in text or cell[:8] in text for cell in secret)
    snapshots = pt.Snapshots.from_table(
        clinic, time="age", bounds={"height": (0, 1), "weight": (0, 1)}, bins=[0, 1], person="id"
    )
    digest = snapshots._rows.digest
    plain = [hashlib.sha256(data).hexdigest() for data in (clinic.read_bytes(), digest)]
    for known in (*plain, digest.hex()):
        assert known[:12] not in text


# Refused before anything is recorded ----------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--seed", "3", "--not-private"], "no --ledger covers it"),
        (["--seed", "3"], "--not-private"),
        (["--cap-epsilon", "2"], "give --cap-epsilon and --cap-delta"),
        (["--cap-delta", "1e-4"], "give --cap-epsilon and --cap-delta"),
        (["--cap-epsilon", "0", "--cap-delta", "0"], "--cap-epsilon must be"),
        (["--cap-epsilon", "1", "--cap-delta", "1"], "--cap-delta must be"),
        (["--adjacency", "replace-one"], "counts under add-remove"),
        (["--epsilon", "0.7"], "epsilon 0.6 and"),
        (["--delta", "9.1e-5"], "delta 9e-05 left"),
        (["--time", "when"], "no column 'when'"),
        (["--feature", "absent", "0", "1"], "no column 'absent'"),
        (["--person", "nobody"], "no column 'nobody'"),
        (["--bandwidth", "2"], "bandwidth must be"),
    ],
)
def test_mistakes_leave_no_entry(options, said, fit, started, ledger, capsys):
    ledger.write_bytes(started)
    assert fit("m", *options) == 2
    assert said in _error(capsys)
    assert _content(ledger.parent) == {ledger.name: started}


def test_bad_input_starts_no_ledger(fit, ledger, tmp_path, capsys):
    assert fit("m", *CAPS, "--time", "when") == 2
    assert "no column 'when'" in _error(capsys)
    assert fit("m", *CAPS, data=tmp_path / "none.csv") == 2
    assert "there is no file" in _error(capsys)
    assert fit("m") == 2
    assert "both --cap-epsilon and --cap-delta" in _error(capsys)
    assert fit("m", *CAPS, epsilon="1.1") == 2
    assert "epsilon 1 and delta 0.0001 left" in _error(capsys)
    assert [path for path in tmp_path.iterdir() if path.read_bytes()] == []


@pytest.mark.parametrize("options", [CAPS[:2], CAPS[2:], CAPS, ["--new-people"]])
def test_options_of_the_ledger_need_one(options, clinic, tmp_path, capsys):
    words = _words(clinic, tmp_path / "m.privtraj", tmp_path / "x")
    at = words.index("--ledger")
    assert cli.main([*words[:at], *words[at + 2 :], *options]) == 2
    assert "goes with --ledger" in _error(capsys)
    assert _content(tmp_path) == {}


def test_people_of_a_batch_are_new_by_word_without_a_ledger_too(tmp_path, capsys):
    words = ["extend", str(tmp_path / "m.privtraj"), "more.csv", "--time-range", "0", "1"]
    assert cli.main([*words, "--new-people", "--out", str(tmp_path / "n.privtraj")]) == 2
    assert "there is no file" in _error(capsys)


@pytest.mark.parametrize("option", ["--out", "--certificate", "data"])
def test_the_ledger_has_a_name_of_its_own(option, clinic, tmp_path, capsys):
    names = {"--out": "m.privtraj", "--certificate": "c.json"}
    same = tmp_path / names.get(option, "clinic.csv")
    data, more = clinic, [option, str(same)]
    if option == "data":
        same.write_bytes(clinic.read_bytes())
        data, more = same, []
    before = _content(tmp_path)
    words = _words(data, tmp_path / "m.privtraj", tmp_path / "." / same.name)
    assert cli.main([*words, *CAPS, *more, "--force"]) == 2
    assert f"'{same.name}' is named twice" in _error(capsys)
    assert _content(tmp_path) == before


# privtraj ledger ------------------------------------------------------------------------------


def test_show(started, ledger, capsys):
    ledger.write_bytes(started)
    assert cli.main(["ledger", "show", str(ledger), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result == {"command": "ledger show", "ledger": str(ledger), **_summary(ledger)}
    assert (result["cap_epsilon"], result["cap_delta"]) == (1, 1e-4)
    assert [entry["epsilon"] for entry in result["entries"]] == [0.4]
    assert cli.main(["ledger", "show", str(ledger)]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert f"Privacy ledger '{ledger}'" in shown.out
    assert "Cap: epsilon 1, delta 0.0001." in shown.out
    assert "epsilon 0.4 and delta 1e-05 spent, epsilon 0.6 and delta 9e-05 left." in shown.out
    assert f"model {result['entries'][0]['model'][:12]}" in shown.out
    assert ledger.read_bytes() == started


def _charge(ledger, *options):
    return ["ledger", "charge", str(ledger), *options]


def test_charge(fit, started, ledger, capsys):
    ledger.write_bytes(started)
    table = ["--what", "a table in the report", "--epsilon", "0.5", "--delta", "0"]
    assert cli.main([*_charge(ledger, *table), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["command"] == "ledger charge"
    assert result["groups"][0]["epsilon"] == 0.9
    assert result["entries"][-1]["what"] == "a table in the report"
    before = ledger.read_bytes()
    assert fit("m") == 2
    assert "epsilon 0.1 and" in _error(capsys)
    assert ledger.read_bytes() == before
    assert fit("m", epsilon="0.1") == 0
    capsys.readouterr()
    assert cli.main([*_charge(ledger, *table), "--cap-epsilon", "2", "--cap-delta", "1e-4"]) == 0
    assert "charged: released elsewhere" in capsys.readouterr().out
    assert _spent(ledger) == 1.5


def test_a_code_that_was_noted_tells_whether_lines_were_cut_off(fit, ledger, capsys):
    assert fit("one", *CAPS, "--json") == 0
    code = json.loads(capsys.readouterr().out)["ledger"]["code"]
    assert fit("two", "--ledger-code", code) == 0
    assert f"Code: {_summary(ledger)['code']} (note it elsewhere" in capsys.readouterr().out
    assert cli.main(["ledger", "show", str(ledger), "--ledger-code", code]) == 0
    later = _summary(ledger)["code"]
    ledger.write_bytes(b"".join(ledger.read_bytes().splitlines(keepends=True)[:-2]))
    capsys.readouterr()
    assert fit("three") == 2
    assert "has lost lines that its seal 'clinic.ledger.seal' knows of" in _error(capsys)
    seal_of(ledger).unlink()
    assert fit("four", "--ledger-code", later) == 2
    assert "does not go on from the code that was noted (--ledger-code)" in _error(capsys)
    assert fit("five", "--ledger-code", code) == 0  # which was before what was cut


def test_a_charge_is_recorded_beyond_the_cap_too(fit, started, ledger, capsys):
    """It has happened; refusing to write it down would make the ledger wrong."""
    ledger.write_bytes(started)
    assert cli.main(_charge(ledger, "--what", "x", "--epsilon", "3", "--delta", "0")) == 0
    assert "epsilon 3.4 and delta 1e-05 spent, epsilon 0 and" in capsys.readouterr().out
    assert fit("m", epsilon="0.01") == 2
    assert "epsilon 0 and delta 9e-05 left" in _error(capsys)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--epsilon", "0.1", "--delta", "0"], "--what is needed"),
        (["--what", "x", "--delta", "0"], "--epsilon is needed"),
        (["--what", "x", "--epsilon", "0.1"], "--delta is needed"),
        (["--what", "x", "--epsilon", "-1", "--delta", "0"], "epsilon must be"),
        (["--what", "x", "--epsilon", "0.1", "--delta", "0", *CAPS[:2]], "--cap-delta"),
        (
            ["--what", "x", "--epsilon", "0.1", "--delta", "0", "--adjacency", "replace-one"],
            "counts under add-remove",
        ),
    ],
)
def test_mistakes_in_a_charge_leave_no_entry(options, said, started, ledger, capsys):
    ledger.write_bytes(started)
    assert cli.main(_charge(ledger, *options)) == 2
    assert said in _error(capsys)
    assert ledger.read_bytes() == started


def test_a_charge_can_start_a_ledger_if_it_brings_the_caps(fit, ledger, capsys):
    words = _charge(ledger, "--what", "x", "--epsilon", "0.7", "--delta", "0")
    assert cli.main(words) == 2
    assert "both --cap-epsilon and --cap-delta" in _error(capsys)
    assert not ledger.exists()
    assert cli.main([*words, *CAPS]) == 0
    assert fit("m") == 2
    assert fit("m", epsilon="0.3") == 0
    assert _spent(ledger) == 1


@pytest.mark.parametrize("action", ["show", "charge"])
def test_what_is_no_ledger(action, clinic, started, tmp_path, capsys):
    more = ["--what", "x", "--epsilon", "1", "--delta", "0"] if action == "charge" else []
    changed = tmp_path / "changed"
    changed.write_bytes(started.replace(b'"epsilon": 0.4', b'"epsilon": 0.1'))
    for path, said in [
        (tmp_path / "none", "there is no ledger"),
        (tmp_path / "nowhere" / "none", "there is no directory"),
        (clinic, "is not a ledger"),
        (tmp_path, "is a directory"),
        (changed, "was changed by hand"),
    ]:
        assert cli.main(["ledger", action, str(path), *more]) == 2
        assert said in _error(capsys)
    assert cli.main(["ledger"]) == 2
    assert "ACTION" in _error(capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["changed"]


# Crashes --------------------------------------------------------------------------------------


def test_no_guard_holds_records_before_the_reservation_is_on_disk(fit, ledger, monkeypatch):
    seen = []

    def watched(self, *args, make=Guard.__init__, **options):
        seen.append(_spent(ledger))
        make(self, *args, **options)

    monkeypatch.setattr(Guard, "__init__", watched)
    assert fit("one", *CAPS) == 0
    assert fit("two") == 0
    assert seen == [0.4, 0.8]


@pytest.mark.parametrize(
    ("owner", "method", "raised", "code"),
    [
        (Guard, "ask", MemoryError(), 2),
        (Guard, "ask", KeyboardInterrupt(), 130),
        (TrajectoryModel, "save", OSError(28, "No space left on device"), 2),
        (TrajectoryModel, "save", KeyboardInterrupt(), 130),
    ],
)
def test_a_fit_that_fails_on_the_way_keeps_its_reservation(
    owner, method, raised, code, fit, ledger, monkeypatch, capsys
):
    def fail(*_, **__):
        raise raised

    with monkeypatch.context() as patch:
        patch.setattr(owner, method, fail)
        assert fit("one", *CAPS) == code
    _error(capsys)
    known = {ledger.name, f"{ledger.name}.seal"}
    (begun,) = _content(ledger.parent).keys() - known
    assert begun == f"{ledger.name}.one.privtraj.begun"
    assert _spent(ledger) == 0.4
    assert [entry["state"] for entry in _summary(ledger)["entries"]] == [RESERVED]
    assert fit("one") == 0  # the same command goes on, for the same reservation
    assert _spent(ledger) == 0.4
    assert begun not in _content(ledger.parent)
    assert fit("two") == 0
    assert _spent(ledger) == 0.8
    capsys.readouterr()
    assert fit("three") == 2
    assert "epsilon 0.2 and" in _error(capsys)


def _start(words):
    command = [sys.executable, "-m", "privtraj", *words]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, **quiet)


def _lines(path):
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _entries(path):
    """None where a kill came before the first line was whole; anything else must be readable."""
    if _lines(path) < 2:
        with pytest.raises(pt.InputError, match="there is no ledger"):
            _summary(path)
        return []
    return _summary(path)["entries"]


def _covered(path, entries):
    """Whether a whole model is at the path; if so, the ledger has to name it."""
    try:
        model = pt.load(path)
    except pt.InputError:
        return False
    (entry,) = [entry for entry in entries if entry["model"] == model.sha256]
    assert model.certificate.epsilon <= entry["epsilon"]
    return True


def _begun(ledger, entries):
    """Hashes of the models of fits that were begun, each of a reservation of the ledger."""
    states = [json.loads(one.read_bytes()) for one in ledger.parent.glob(f"{ledger.name}.*.begun")]
    begun = [one for state in states for one in state["batches"] if "model" in one]
    assert {one["entry"] for one in begun} <= {entry["id"] for entry in entries}
    return {one["model"] for one in begun}


# When to kill: the ledger and the lines it had, the model to be -> whether it is time.
MOMENTS = {
    "ledger made": lambda ledger, had, out: ledger.exists(),  # first: later ones find it there
    "while it starts": lambda ledger, had, out: True,
    "reserved": lambda ledger, had, out: _lines(ledger) > had,
    "a while after that": lambda ledger, had, out: _lines(ledger) > had,
    "settled": lambda ledger, had, out: _lines(ledger) > had + 1,
    "model begun": lambda ledger, had, out: any(out.parent.glob(f".*{out.name}")),
    "model there": lambda ledger, had, out: out.exists(),
}
AFTER = {"while it starts": (0.2, 1.0), "a while after that": (0.05, 0.6)}  # seconds


@pytest.mark.thorough
@needs_posix
def test_whatever_moment_a_fit_is_killed_at_its_model_is_covered(clinic, tmp_path):
    ledger, rng = tmp_path / "clinic.ledger", random.Random(0)
    caps = ["--cap-epsilon", "100", "--cap-delta", "0.1"]
    killed = 0
    for k, (moment, now) in enumerate(MOMENTS.items()):
        out = tmp_path / f"killed-{k}.privtraj"
        had, before = _lines(ledger) or 1, len(_entries(ledger))  # 1: the header
        process = _start([*_words(clinic, out, ledger), *caps])
        while process.poll() is None and not now(ledger, had, out):
            time.sleep(5e-4)
        time.sleep(rng.uniform(*AFTER.get(moment, (0, 0))))
        process.kill()
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        assert process.returncode in (0, -signal.SIGKILL)

        entries = _entries(ledger)
        assert len(entries) in (before, before + 1)
        assert out.exists() == _covered(out, entries)  # whole, or not there
        for stray in tmp_path.glob(".*"):  # the ledger may not name it yet
            with suppress(pt.InputError):
                assert pt.load(stray).sha256 in _begun(ledger, entries)
        if moment in ("reserved", "a while after that", "settled", "model begun", "model there"):
            assert len(entries) == before + 1

        following = tmp_path / f"next-{k}.privtraj"
        assert cli.main([*_words(clinic, following, ledger), *caps]) == 0
        assert len({entry["fingerprint"] for entry in _entries(ledger)}) == 1
        assert _spent(ledger) == round(0.4 * (len(entries) + 1), 1)
    assert killed >= 4


@pytest.mark.thorough
@needs_posix
def test_of_two_fits_at_once_the_cap_admits_one(clinic, tmp_path):
    ledger = tmp_path / "clinic.ledger"
    outs = [tmp_path / f"{k}.privtraj" for k in range(2)]
    started = [_start([*_words(clinic, out, ledger, "0.6"), *CAPS]) for out in outs]
    errors = [process.communicate()[1] for process in started]
    assert sorted(process.returncode for process in started) == [0, 2]
    lost = [process.returncode for process in started].index(2)
    assert "has epsilon 0.4 and delta 9e-05 left" in errors[lost]
    assert _content(tmp_path).keys() == {ledger.name, f"{ledger.name}.seal", outs[1 - lost].name}
    assert _covered(outs[1 - lost], _entries(ledger))
    assert _spent(ledger) == 0.6
