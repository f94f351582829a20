"""`privtraj verify`: a good pair passes, and every way to mix up or edit one is named.

Whoever rewrites a model, its checksums and its certificate so that all of them agree has made
another release, and its certificate is that forger's word: only a signature tells
(tests/privacy/test_signatures.py).
"""

import hashlib
import io
import json
import zipfile
from typing import NamedTuple

import numpy as np
import pytest

from privtraj import cli, datasets
from privtraj.export import tables as export_tables
from privtraj.model.model import load
from privtraj.privacy import signatures

# The shape that the other tests of the command line have: compiling is what takes time.
PUBLIC = ["--adjacency", "replace-one", "--public-counts", "40", "40", "40", "40", "40"]
SHAPE = ["--measure", "counts", "--particles", "24", "--cells", "6", "--windows", "bins"]


class Pair(NamedTuple):
    model: str
    certificate: str


@pytest.fixture(scope="module")
def fit(tmp_path_factory):
    """Function: options -> model and certificate of a small fit."""
    folder = tmp_path_factory.mktemp("fits")
    export_tables.write_table(datasets.growth_clinic(200), folder / "clinic.csv")

    def make(name, *options):
        pair = Pair(str(folder / f"{name}.privtraj"), str(folder / f"{name}.json"))
        columns = ["--time", "age", "--person", "id", "--time-range", "0", "20", "--bins", "5"]
        bounds = ["--feature", "height", "40", "210", "--feature", "weight", "1", "140"]
        budget = ["--epsilon", "2", "--delta", "1e-4", *options]
        out = ["--out", pair.model, "--certificate", pair.certificate]
        words = ["fit", str(folder / "clinic.csv"), *columns, *bounds, *budget, *out, *SHAPE]
        assert cli.main(words) == 0
        return pair

    return make


@pytest.fixture(scope="module")
def good(fit):
    return fit("good")


@pytest.fixture(scope="module")
def other(fit):
    return fit("other")


def _rebuilt(source, path, *, header=None, array=None):
    """The model with an edited header or particles, and every checksum made again."""
    with zipfile.ZipFile(source) as file:
        members = {name: file.read(name) for name in file.namelist()}
    if array is not None:
        buffer = io.BytesIO()
        np.save(buffer, array(np.load(io.BytesIO(members["particles.npy"]))))
        members["particles.npy"] = buffer.getvalue()
    values = json.loads(members["model.json"])
    values["sha256"] = {
        name: hashlib.sha256(data).hexdigest()
        for name, data in members.items()
        if name.endswith(".npy")
    }
    if header is not None:
        header(values)
    members["model.json"] = json.dumps(values).encode()
    members["model.sha256"] = hashlib.sha256(members["model.json"]).hexdigest().encode()
    with zipfile.ZipFile(path, "w") as file:
        for name, data in members.items():
            file.writestr(name, data)
    return str(path)


def _refused(words, said, capsys):
    assert cli.main(["verify", *words]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("privtraj: error: ")
    assert shown.err.count("\n") == 1
    assert said in shown.err


# What passes ----------------------------------------------------------------------------------


def test_a_good_pair_passes(good, capsys):
    for words in ([good.model], [good.model, "--certificate", good.certificate]):
        assert cli.main(["verify", *words]) == 0
        shown = capsys.readouterr()
        assert "Privacy certificate" in shown.out
        assert load(good.model).sha256 in shown.out
        assert "the certificate is its own, and its epsilon follows" in shown.out
        assert "the word of whoever ran the fit" in shown.out
        assert shown.err == ""


def test_the_result_as_json(good, capsys):
    assert cli.main(["verify", good.model, "--certificate", good.certificate, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    model = load(good.model)
    recomputed = result.pop("recomputed_epsilon")
    assert recomputed == pytest.approx(model.certificate.epsilon, rel=1e-9)
    assert result == {
        "command": "verify",
        "model": good.model,
        "model_sha256": model.sha256,
        "private": True,
        "epsilon": model.certificate.epsilon,
        "delta": 1e-4,
        "adjacency": "add-remove",
        "warnings": model.certificate.warnings,
        "signed_by": None,
        "signature_checked": False,
    }


@pytest.mark.parametrize(
    "options",
    [
        ["--adjacency", "replace-one"],
        PUBLIC,
        ["--delta", "0"],
        ["--windows", "bins"],
        ["--records-per-person", "2"],
        ["--measure", "gradients"],
    ],
    ids=" ".join,
)
def test_other_guarantees_pass_too(options, fit, capsys):
    pair = fit(options[0].strip("-") + options[-1], *options)
    assert cli.main(["verify", pair.model, "--certificate", pair.certificate]) == 0


def test_a_rebuilt_file_passes(good, tmp_path, capsys):
    """So that what is refused below is refused for the edit, not for the rebuilding."""
    path = _rebuilt(good.model, tmp_path / "m.privtraj", array=lambda x: x, header=lambda x: None)
    assert cli.main(["verify", path, "--certificate", good.certificate]) == 0


# Mixed up -------------------------------------------------------------------------------------


@pytest.mark.parametrize("json_too", [[], ["--json"]])
def test_swapped_certificates(good, other, json_too, capsys):
    for model, certificate in [(good, other), (other, good)]:
        words = [model.model, "--certificate", certificate.certificate, *json_too]
        _refused(words, f"'{certificate.certificate}' is not the certificate of", capsys)


def test_a_seeded_model_is_not_passed(fit, capsys):
    seeded = fit("seeded", "--seed", "3", "--not-private")
    capsys.readouterr()
    for words in ([], ["--certificate", seeded.certificate], ["--json"]):
        _refused([seeded.model, *words], "is whole but NOT PRIVATE", capsys)


def test_what_is_no_model_or_no_certificate(good, tmp_path, capsys):
    _refused([str(tmp_path / "none.privtraj")], "there is no file", capsys)
    _refused([good.certificate], "not a privtraj model", capsys)
    missing = str(tmp_path / "none.json")
    _refused([good.model, "--certificate", missing], "there is no file", capsys)
    _refused([good.model, "--certificate", good.model], "is named twice", capsys)
    for text in ("", "{", "[]", "7", "null", '{"epsilon": 1}', "\ud800"):
        path = tmp_path / "bad.json"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        _refused([good.model, "--certificate", str(path)], "certificate", capsys)


# Edited certificate beside the model ----------------------------------------------------------

BESIDE = {
    "epsilon lowered": lambda c: c.update(epsilon=c["epsilon"] / 2),
    "epsilon lowered by a little": lambda c: c.update(epsilon=c["epsilon"] * (1 - 1e-12)),
    "epsilon raised": lambda c: c.update(epsilon=c["epsilon"] * 2),
    "delta": lambda c: c.update(delta=1e-9),
    "budget": lambda c: c.update(target_epsilon=0.1),
    "adjacency": lambda c: c.update(adjacency="replace-one"),
    "attacker": lambda c: c["attacker"].update(advantage=0.0),
    "public inputs": lambda c: c["public_inputs"].clear(),
    "an entry": lambda c: c["ledger"][0].update(times=0),
    "a name in an entry": lambda c: c["ledger"][0].update(what="nothing at all"),
    "an entry less": lambda c: c["ledger"].pop(),
    "model": lambda c: c.update(model_sha256=None),
    "noise": lambda c: c.update(noise="none"),
    "a field less": lambda c: c.pop("slack"),
}


@pytest.mark.parametrize("edit", BESIDE)
def test_an_edited_certificate_is_not_that_of_the_model(edit, good, tmp_path, capsys):
    with open(good.certificate) as file:
        values = json.load(file)
    BESIDE[edit](values)
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(values))
    _refused([good.model, "--certificate", str(path)], "certificate", capsys)


# Edited model, with every checksum made again -------------------------------------------------


def _in_certificate(change):
    return lambda header: change(header["certificate"])


def _entry(which, **values):
    return _in_certificate(lambda c: c["ledger"][which].update(values))


FOLLOWS = "does not follow from its ledger"
INSIDE = {
    "epsilon halved": (_in_certificate(lambda c: c.update(epsilon=c["epsilon"] / 2)), FOLLOWS),
    "epsilon a little less": (
        _in_certificate(lambda c: c.update(epsilon=c["epsilon"] * (1 - 1e-5))),
        FOLLOWS,
    ),
    "epsilon doubled": (_in_certificate(lambda c: c.update(epsilon=c["epsilon"] * 2)), FOLLOWS),
    "epsilon zero": (_in_certificate(lambda c: c.update(epsilon=0.0)), FOLLOWS),
    "epsilon none": (_in_certificate(lambda c: c.update(epsilon=None)), "is damaged"),
    "delta smaller": (_in_certificate(lambda c: c.update(delta=0.0)), FOLLOWS),
    "delta one": (_in_certificate(lambda c: c.update(delta=1)), "is damaged"),
    "budget": (_in_certificate(lambda c: c.update(target_epsilon=0.1)), "more than its budget"),
    "adjacency": (_in_certificate(lambda c: c.update(adjacency="replace-one")), FOLLOWS),
    "other adjacency": (
        _in_certificate(lambda c: c.update(epsilon_other_adjacency=0.1)),
        FOLLOWS,
    ),
    "attacker": (_in_certificate(lambda c: c["attacker"].update(advantage=0.0)), FOLLOWS),
    "no attacker": (_in_certificate(lambda c: c.update(attacker={})), "is damaged"),
    "mu": (_in_certificate(lambda c: c.update(mu=0.01)), FOLLOWS),
    "slack": (_in_certificate(lambda c: c.update(slack=1e-3)), FOLLOWS),
    "negative slack": (_in_certificate(lambda c: c.update(slack=-1)), "is damaged"),
    "less noise": (_entry(1, noise_epsilon=3.0), FOLLOWS),
    "more noise": (_entry(1, noise_epsilon=0.1), FOLLOWS),
    "more often": (_entry(1, times=2), FOLLOWS),
    "more records": (_entry(1, records=2), FOLLOWS),
    "another entry": (
        _in_certificate(lambda c: c["ledger"].append(dict(c["ledger"][0], what="more"))),
        FOLLOWS,
    ),
    "an entry less": (_in_certificate(lambda c: c["ledger"].pop()), FOLLOWS),
    "no noise": (_entry(0, noise_epsilon=None), "its ledger cannot be read"),
    "no records": (_entry(0, records=0), "its ledger cannot be read"),
    "endlessly often": (_entry(0, times=1e400), "not a privtraj model"),
    "too often": (_entry(0, times="x"), "its ledger cannot be read"),
    "unknown mechanism": (_entry(0, mechanism="magic"), "is damaged"),
    "not an entry": (_in_certificate(lambda c: c.update(ledger=[1])), "is damaged"),
    "not a ledger": (_in_certificate(lambda c: c.update(ledger=None)), "is damaged"),
    "unknown adjacency": (_in_certificate(lambda c: c.update(adjacency="both")), "is damaged"),
    "public inputs": (_in_certificate(lambda c: c.update(public_inputs=[])), "is damaged"),
    "of no model": (_in_certificate(lambda c: c.update(model_sha256=None)), "another model"),
    "an entry's cost": (_entry(0, epsilon=1e-3), FOLLOWS),
    "not private": (_in_certificate(lambda c: c.update(private=False)), "NOT PRIVATE"),
    "private, perhaps": (_in_certificate(lambda c: c.update(private=1)), "is damaged"),
    "no certificate": (lambda header: header.pop("certificate"), "is damaged"),
}


def _own_hash(header):
    """What a forger does who knows the format: name the model again."""
    if isinstance(header.get("certificate"), dict) and header["certificate"]["model_sha256"]:
        header["certificate"]["model_sha256"] = None
        text = json.dumps(header, sort_keys=True)
        header["certificate"]["model_sha256"] = hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("edit", INSIDE)
def test_an_edit_is_refused_by_what_the_certificate_says_of_itself(edit, good, tmp_path, capsys):
    change, said = INSIDE[edit]

    def forged(header):
        change(header)
        _own_hash(header)

    _refused([_rebuilt(good.model, tmp_path / "m.privtraj", header=forged)], said, capsys)


EDITS = {
    **{name: change for name, (change, _) in INSIDE.items() if name != "of no model"},
    "of another model": _in_certificate(lambda c: c.update(model_sha256="ab" * 32)),
    "public inputs emptied": _in_certificate(lambda c: c["public_inputs"].clear()),
    "noise": _in_certificate(lambda c: c.update(noise="none")),
    "settings": lambda header: header["settings"].update(steps=9),
    "names": lambda header: header.update(features=["weight", "height"]),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_is_refused_by_the_hash(edit, good, tmp_path, capsys):
    path = _rebuilt(good.model, tmp_path / "m.privtraj", header=EDITS[edit])
    _refused([path], "m.privtraj", capsys)


def test_a_moved_particle_is_refused(good, tmp_path, capsys):
    def moved(particles):
        particles[0, 0, 0] += 1e-3
        return particles

    path = _rebuilt(good.model, tmp_path / "m.privtraj", array=moved)
    _refused([path], "its certificate belongs to another model", capsys)


def test_only_the_right_pair_passes_where_the_forgery_agrees_with_itself(good, tmp_path, capsys):
    """A forger who has the model name itself again, and states less for less."""

    def cheaper(header):
        header["certificate"]["public_inputs"].clear()
        _own_hash(header)

    for array, header in [(lambda x: x[:, ::-1], _own_hash), (None, cheaper)]:
        path = _rebuilt(good.model, tmp_path / "m.privtraj", array=array, header=header)
        _refused([path, "--certificate", good.certificate], "is not the certificate of", capsys)


def test_a_good_model_has_a_dossier(good, tmp_path, capsys):
    out = tmp_path / "dossier.html"
    assert cli.main(["dossier", good.model, "-o", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["out"] == str(out)
    assert "Privacy dossier: height and weight over age" in out.read_text("utf-8")
    assert cli.main(["dossier", good.model, "-o", str(out)]) == 2


def test_an_attestation_tells_whether_the_code_is_the_attested_one(good, tmp_path, capsys):
    pytest.importorskip("cryptography")
    for name in ("tester", "other"):
        signatures.new_key(tmp_path / name)
    source = load(good.model).certificate.source_sha256
    said = {signatures.ATTESTATION: 1, "version": "0.3", "date": "2026-11-30"}
    said |= {"source_sha256": source, "results": {"tests": {"failures": 0}}}
    path = tmp_path / "attestation.json"

    def verify(values, *key):
        path.write_text(json.dumps(values))
        code = cli.main(["verify", good.model, "--attestation", str(path), *key])
        return code, "".join(capsys.readouterr())

    key = ["--attestation-key", str(tmp_path / "tester.pub")]
    signed = signatures.signed_statement(said, tmp_path / "tester")
    code, text = verify(signed, *key)
    assert (code, "attested on 2026-11-30" in text, "not checked:" in text) == (0, True, False)
    assert '"failures": 0' in text
    assert "signature was not checked" in verify(signed)[1]
    forged = {**signed, "results": {"tests": {"failures": 0, "mutants": "all caught"}}}
    assert "was changed after it was signed" in verify(forged, *key)[1]
    assert verify(forged, *key)[0] == 2
    code, text = verify(signatures.signed_statement(said, tmp_path / "other"), *key)
    assert (code, "another key" in text) == (2, True)
    older = signatures.signed_statement({**said, "source_sha256": "0" * 64}, tmp_path / "tester")
    code, text = verify(older, *key)
    assert (code, "other code than the attested" in text) == (2, True)
    for broken in ({}, [], {**signed, "signature": None}, {**signed, "results": 3}):
        assert "is no attestation" in verify(broken, *key)[1]
