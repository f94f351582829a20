"""Files that others send: whatever is in them, one sentence answers, soon and in little memory."""

import contextlib
import json
import os
import subprocess
import sys
import time
import tracemalloc
import unicodedata
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostile.files import bomb, good_model, hostile_files, sealed, unpacked
from privtraj.base.errors import InputError, printable
from privtraj.base.files import FREE, Hostile, read_zip, strict_json, write_zip
from privtraj.cli import config
from privtraj.cli.console import Console
from privtraj.model.model import load

HERE = Path(__file__).parent / "hostile"
# beyond what the library takes; of the processor, several times what the longest takes
MEGABYTES, SECONDS = 200, 5.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    good_model().save(folder / "good.privtraj")
    return folder


@pytest.fixture(scope="module")
def good(folder):
    return folder / "good.privtraj"


# All of them ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is measured on Linux")
@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.thorough), 5])
def test_every_hostile_file_is_answered_in_a_sentence_soon_and_in_little_memory(
    every, folder, good
):
    """All of them in `make test-all`, each fifth in `make test`."""
    for file in folder.glob("[0-9]*"):
        file.unlink()
    names = {}
    for number, (kind, name, data) in enumerate(hostile_files(good)):
        if number % every:
            continue
        file = f"{number:03}.{'json' if kind == 'certificate' else 'privtraj'}"
        (folder / file).write_bytes(data)
        names[file] = f"{kind}: {name}"
    assert len(names) >= 400 // every
    words = [sys.executable, HERE / "answer.py", folder, str(MEGABYTES)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["answers"].pop("good.privtraj")[0] == "accepted"
    answers = {names[file]: answer for file, answer in told["answers"].items()}
    assert len(answers) == len(names)
    assert {name: said for name, (how, said, _) in answers.items() if how != "refused"} == {}
    assert {name for name, (_, _, spent) in answers.items() if spent > SECONDS} == set()
    assert {said for _, said, _ in answers.values() if not _is_sentence(said)} == set()
    assert told["grown"] < MEGABYTES


def _is_sentence(said):
    return 20 < len(said) < 400 and said.isprintable() and said[0] not in "({[" and ": " in said


def test_what_is_no_file_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.privtraj")
    for path in (tmp_path, tmp_path / "pipe.privtraj", Path("/dev/zero")):
        with pytest.raises(InputError, match="not a privtraj model"):
            load(path)


# Files that are as they should be -------------------------------------------------------------


def test_a_file_of_an_older_version_keeps_its_content_and_its_hash():
    """Written by version 0.2 before there were signatures."""
    model = load(HERE / "format3.privtraj")
    assert model.sha256 == "85612efc1e6f1502aaee86d4bc7eefc3d1bd7b4597864edb24c9f1d2342ed790"
    assert model.certificate.signature is None
    assert model.verify() == pytest.approx(model.certificate.epsilon)
    np.testing.assert_array_equal(model.weights, good_model().weights)


def test_a_large_file_is_written_so_that_it_can_be_read(tmp_path):
    """Zeros pack a thousandfold, which would look like a bomb."""
    members = {"zeros": bytes(FREE), "few": b"few"}
    write_zip(tmp_path / "large", members)
    assert read_zip(tmp_path / "large") == members
    write_zip(tmp_path / "small", {"zeros": bytes(FREE)})
    assert (tmp_path / "small").stat().st_size < FREE / 100
    assert len(read_zip(tmp_path / "small")["zeros"]) == FREE


def test_large_members_of_random_digits_are_not_deflated_and_others_are(tmp_path):
    """Which takes long and gains little: a model that grows keeps its time."""
    digits = np.random.default_rng(0).random(2**19, np.float32).tobytes()
    members = {"large": digits, "small": digits[: 2**19], "equal": bytes(2**21)}
    write_zip(tmp_path / "zip", members)
    assert read_zip(tmp_path / "zip") == members
    with zipfile.ZipFile(tmp_path / "zip") as file:
        methods = {one.filename: one.compress_type for one in file.infolist()}
    deflated = zipfile.ZIP_DEFLATED
    assert methods == {"large": zipfile.ZIP_STORED, "small": deflated, "equal": deflated}


def test_a_zip_may_unpack_to_what_arrays_need_and_no_further(tmp_path):
    noise = np.random.default_rng(0).bytes(2**20)
    for megabytes, fits in [(31, True), (33, False)]:
        zeros = bytes(megabytes * 2**20 - len(noise))
        with zipfile.ZipFile(tmp_path / "zip", "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("noise", noise)
            file.writestr("zeros", zeros)
        if fits:
            assert read_zip(tmp_path / "zip")["zeros"] == zeros
        else:
            with pytest.raises(Hostile, match="far more than its own size"):
                read_zip(tmp_path / "zip")


def test_a_member_is_unpacked_no_further_than_it_says(tmp_path):
    (tmp_path / "zip").write_bytes(bomb("model.json", 400, stated=1000))
    tracemalloc.start()
    try:
        with pytest.raises(zipfile.BadZipFile):
            read_zip(tmp_path / "zip")
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4)
    ),
    max_leaves=20,
)


@settings(max_examples=30)
@given(VALUES)
def test_json_that_is_modest_is_read_as_it_was_written(value):
    for indent in (None, 2):
        assert strict_json(json.dumps(value, indent=indent).encode()) == value


# Anything in any place ------------------------------------------------------------------------


def _refused_or_whole(path):
    """What can be loaded can be used; what cannot is answered in a sentence."""
    with contextlib.suppress(InputError):  # all else, a failure
        model = load(path)
        assert np.isfinite(model.sample(3, seed=0).values).all()
        assert "Guarantee" in str(model.certificate)
        assert "TrajectoryModel" in repr(model)
        model.verify()


@settings(max_examples=30)
@given(data=st.data())
def test_any_value_in_any_field(data, good):
    header, members = unpacked(good)
    place = data.draw(st.sampled_from([header, header["certificate"], header["settings"]]))
    place[data.draw(st.sampled_from(sorted(place)))] = data.draw(VALUES)
    path = good.with_name("any.privtraj")
    path.write_bytes(sealed(header, members))
    _refused_or_whole(path)


NUMBERS = st.integers(-1, 10**12) | st.floats(0, 1e300) | st.sampled_from([0, 1, 2, 1e-9, 64.0])


@settings(max_examples=30)
@given(data=st.data())
def test_any_number_in_a_ledger(data, good):
    header, members = unpacked(good)
    entry = data.draw(st.sampled_from(header["certificate"]["ledger"]))
    for _ in range(data.draw(st.integers(1, 2))):
        entry[data.draw(st.sampled_from(["times", "noise_epsilon", "records", "epsilon"]))] = (
            data.draw(NUMBERS)
        )
    path = good.with_name("any.privtraj")
    path.write_bytes(sealed(header, members))
    _refused_or_whole(path)


# Configurations -------------------------------------------------------------------------------

CONFIGURATIONS = {
    "deep.toml": "epsilon = " + "[" * 5000 + "]" * 5000,
    "deep keys.toml": ".".join("a" * 100_000) + " = 1",
    "deep quoted keys.toml": r'x = {"\"" . ' + " . ".join(["'\"'", "b"] * 10_000) + " = 1}",
    "an integer of 5,000 digits.toml": "epsilon = " + "1" * 5000,
    "an integer of 100 digits.toml": "epsilon = " + "1" * 100,
    "a long text.toml": f'out = "{"x" * 20_000}"',
    "large.toml": "# nothing\n" * 100_000,
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_hostile_configuration_is_refused_in_a_sentence_soon(name, tmp_path):
    (tmp_path / name).write_text(CONFIGURATIONS[name])
    begun = time.process_time()
    with pytest.raises(InputError) as refused:
        config.load(tmp_path / name)
    assert time.process_time() - begun < SECONDS
    assert _is_sentence(str(refused.value).replace(str(tmp_path), ""))


# Terminals ------------------------------------------------------------------------------------


@given(st.text())
def test_nothing_that_is_shown_steers_a_terminal(text):
    shown = printable(text)
    assert len(shown) == len(text)
    steering = [letter for letter in shown if unicodedata.category(letter) in ("Cc", "Cf", "Cs")]
    assert set(steering) <= {"\n"}
    assert printable(shown) == shown


def test_results_and_notes_are_shown_without_what_steers_a_terminal(capsys):
    said = "a \x1b]0;title\x07 name\x9b31m"
    Console().result({}, said)
    Console().note(said)
    out, err = capsys.readouterr()
    assert not {"\x1b", "\x9b", "\x07"} & set(out + err)
    assert "name" in out
    assert "name" in err
