"""What a release is built from, and what was tested of it."""

import csv
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from experiments import attest, supply
from privtraj.privacy import certificate, signatures

ROOT = Path(__file__).parents[2]


def test_the_lock_has_names_versions_and_hashes_and_no_address():
    lines = (ROOT / "requirements.lock").read_text("utf-8").splitlines()[1:]
    form = r"[a-z0-9-]+==[\w.!+]+ --hash=sha256:[0-9a-f]{64}  # installed sha256:[0-9a-f]{64}"
    assert all(re.fullmatch(form, line) for line in lines)
    names = {line.partition("==")[0] for line in lines}
    assert {"numpy", "scipy", "dp-accounting", "pyarrow", "cryptography"} <= names
    assert "privtraj" not in names


def test_the_check_finds_what_is_not_as_locked(tmp_path, monkeypatch, capsys):
    here = supply.needed()
    lines = [f"{n}=={d.version}  # installed sha256:{supply.installed(d)}" for n, d in here.items()]
    monkeypatch.setattr(supply, "LOCK", tmp_path / "requirements.lock")
    supply.LOCK.write_text("\n".join(lines))
    assert supply.check() == 0
    changed = [line for line in lines if not line.startswith("pyarrow==")]
    changed = [re.sub("^numpy==", "numpy==0.", line) for line in changed]
    changed = [re.sub("^(scipy==.*sha256:).*", r"\g<1>" + "0" * 64, line) for line in changed]
    supply.LOCK.write_text("\n".join([*changed, "leftpad==1.0"]))
    capsys.readouterr()
    assert supply.check() == 1
    said = capsys.readouterr().out
    for words in ("leftpad is locked", "pyarrow is not locked", "numpy is", "scipy .* other files"):
        assert re.search(words, said)


def weak(name, *events, versions=(), **more):
    """A record of OSV: of a package, versions between events, versions that are listed."""
    ranges = [{"type": "ECOSYSTEM", "events": [dict([event]) for event in events]}]
    of = {"package": {"ecosystem": "PyPI", "name": name}, "versions": [*versions]}
    return {"id": f"OSV-{name}", "affected": [{**of, "ranges": ranges}], **more}


ZERO = ("introduced", "0")


@pytest.mark.parametrize(
    ("record", "found"),
    [
        (weak("Left_Pad", ZERO), True),
        (weak("left-pad", ZERO, ("fixed", "1.10")), True),  # which is after 1.9
        (weak("left-pad", ZERO, ("fixed", "1.9")), False),
        (weak("left-pad", ZERO, ("last_affected", "1.9")), True),
        (weak("left-pad", ZERO, ("last_affected", "1.8")), False),
        (weak("left-pad", ("fixed", "1.5"), ZERO, ("introduced", "1.9")), True),
        (weak("left-pad", ("introduced", "1.10")), False),
        (weak("left-pad", versions=["1.9"]), True),
        (weak("left-pad", versions=["1.10"]), False),
        (weak("left-pad", ZERO, ("fixed", "one")), True),
        (weak("right-pad", ZERO), False),
        (weak("left-pad", ZERO, withdrawn="2026-01-01"), False),
        ({"dependencies": [{"name": "left-pad", "version": "1.9", "vulns": [{"id": "X"}]}]}, True),
        ({"dependencies": [{"name": "left-pad", "version": "1.9", "vulns": []}]}, False),
    ],
)
@pytest.mark.parametrize("form", ["file", "list", "folder", "archive"])
def test_known_weaknesses_of_locked_versions_are_found(
    tmp_path, monkeypatch, capsys, record, found, form
):
    monkeypatch.setattr(supply, "LOCK", tmp_path / "requirements.lock")
    monkeypatch.setattr(supply, "needed", lambda: {"left-pad": SimpleNamespace(version="1.9")})
    supply.LOCK.write_text("left-pad==1.9 --hash=sha256:00\n")
    path = tmp_path / "osv.json"
    path.write_text(json.dumps([record] if form == "list" and "id" in record else record))
    if form == "archive":
        with zipfile.ZipFile(tmp_path / "osv.zip", "w") as archive:
            archive.write(path, "osv.json")
        path = tmp_path / "osv.zip"
    assert supply.check(tmp_path if form == "folder" else path) == int(found)
    assert ("left-pad 1.9 has a known weakness" in capsys.readouterr().out) == found


def test_the_bill_of_materials_is_the_same_twice_and_names_every_package():
    made = supply.sbom()
    assert made == supply.sbom()
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.5")
    assert [part["name"] for part in made["components"]] == list(supply.needed())
    assert all(part["version"] and part["hashes"] for part in made["components"])


def test_a_statement_says_what_was_run_and_what_is_of_an_older_source(tmp_path):
    (tmp_path / "tests.xml").write_text(
        '<testsuites><testsuite tests="5" failures="1" errors="0" skipped="2"/></testsuites>'
    )
    with (tmp_path / "mutants.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["name", "said"], ["a", "caught"], ["b", "SURVIVED"]])
    (tmp_path / "audit.json").write_text("{}")
    os.utime(tmp_path / "audit.json", (0, 0))
    said = attest.statement(tmp_path)
    assert said["source_sha256"] == certificate.source()
    assert set(said["files"]) == {path.name for path in (attest.SOURCE / "privacy").glob("*.py")}
    results = said["results"]
    assert (results["tests"]["tests"], results["tests"]["failures"]) == (5, 1)
    assert results["planted breaks"]["SURVIVED"] == 1
    assert results["audit"] == "of an older source"
    assert results["breaks by operators"] == "not run"
    pytest.importorskip("cryptography")
    signatures.new_key(tmp_path / "k")
    path = tmp_path / "attestation.json"
    path.write_text(json.dumps(signatures.signed_statement(said, tmp_path / "k")))
    assert signatures.read_statement(path, tmp_path / "k.pub")["results"] == results


@pytest.mark.thorough
@pytest.mark.slow
def test_two_wheels_have_the_same_bytes(tmp_path):
    made = []
    for name in ("one", "two"):
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
        environment = {**os.environ, "SOURCE_DATE_EPOCH": "1767225600", "PYTHONPATH": ""}
        done = subprocess.run(
            [*command, str(tmp_path / name), str(ROOT)], env=environment, capture_output=True
        )
        if done.returncode:
            pytest.skip("no wheel can be built here: hatchling is not at hand")
        made.append(next((tmp_path / name).glob("*.whl")).read_bytes())
    assert made[0] == made[1]
