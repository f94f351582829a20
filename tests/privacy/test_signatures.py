"""Signatures: what is signed cannot be changed, whoever computes the checksums again."""

import hashlib
import json
import os
import stat
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

import privtraj as pt
from hostile.files import good_model, sealed, unpacked
from privtraj import cli
from privtraj.base.errors import InputError
from privtraj.privacy import signatures
from privtraj.privacy.certificate import Certificate

serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """(private, public) of the steward and of somebody else."""
    folder = tmp_path_factory.mktemp("keys")
    made = [folder / name for name in ("steward", "other")]
    for key in made:
        pt.new_key(key)
    return [(key, key.with_name(f"{key.name}.pub")) for key in made]


@pytest.fixture(scope="module")
def model():
    return good_model()


@pytest.fixture(scope="module")
def signed(model, keys):
    return model.signed(keys[0][0])


@pytest.fixture
def files(model, tmp_path):
    """A model and its certificate, as a fit writes them."""
    model.save(tmp_path / "m.privtraj")
    (tmp_path / "c.json").write_text(model.certificate.to_json())
    return tmp_path / "m.privtraj", tmp_path / "c.json"


# Keys -----------------------------------------------------------------------------------------


def test_nobody_else_may_read_a_key_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        pt.new_key(tmp_path / "key")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600


def test_a_fingerprint_is_the_hash_of_the_key_as_other_programs_write_it(tmp_path):
    made = pt.new_key(tmp_path / "key")
    public = serialization.load_pem_public_key((tmp_path / "key.pub").read_bytes())
    der = public.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    assert made == hashlib.sha256(der).hexdigest() == signatures.fingerprint(tmp_path / "key.pub")


@pytest.mark.parametrize("taken", ["key", "key.pub"])
def test_a_key_is_never_replaced(tmp_path, taken):
    (tmp_path / taken).write_text("kept")
    with pytest.raises(InputError, match="keys are never replaced"):
        pt.new_key(tmp_path / "key")
    assert [path.name for path in tmp_path.iterdir()] == [taken]
    assert (tmp_path / taken).read_text() == "kept"


def test_two_keys_differ(keys):
    assert len({signatures.fingerprint(public) for _, public in keys}) == 2


# What is signed -------------------------------------------------------------------------------


def test_a_signed_model_passes_with_the_key_and_names_it(signed, keys, tmp_path):
    signed.save(tmp_path / "m")
    back = pt.load(tmp_path / "m")
    assert back.verify(keys[0][1]) == back.certificate.epsilon
    assert back.certificate == signed.certificate
    name = signatures.fingerprint(keys[0][1])
    assert back.certificate.signed_by == name
    assert f"Signed by: key sha256 {name}." in str(back.certificate)


def test_signing_changes_neither_the_hash_nor_what_is_stated(model, signed, keys):
    assert signed.sha256 == model.sha256 == signed.certificate.model_sha256
    assert replace(signed.certificate, signature=None) == model.certificate
    assert model.signed(keys[0][0]).certificate == signed.certificate


def test_a_model_that_is_sealed_again_has_no_signature(signed):
    assert replace(signed, diffusivity=0.5).sealed().certificate.signature is None


OTHER = {
    "epsilon": 0.01,
    "delta": 1e-9,
    "target_epsilon": 9.0,
    "adjacency": "replace-one",
    "mu": 0.1,
    "epsilon_other_adjacency": 0.02,
    "epsilon_clt": 0.1,
    "attacker": {"true_positive_rate": {"0.001": 0, "0.01": 0, "0.1": 0}, "advantage": 0},
    "ledger": (),
    "noise": "none",
    "private": False,
    "slack": 0.0,
    "version": "9",
    "public_inputs": {},
    "found": {"resolution in time": "fine"},
    "declared": {"title": "another"},
    "source_sha256": "cd" * 32,
    "model_sha256": "ab" * 32,
}


def test_every_field_of_a_certificate_is_signed(signed, keys):
    assert {*OTHER, "signature"} == {field.name for field in fields(Certificate)}
    for name, value in OTHER.items():
        changed = replace(signed.certificate, **{name: value})
        assert changed != signed.certificate, name
        with pytest.raises(InputError, match="changed after it was signed"):
            signatures.check_signature(changed, keys[0][1])


FORGERIES = {
    "a particle": lambda m: {"particles": m.particles[:, ::-1]},
    "a weight": lambda m: {"weights": np.full_like(m.weights, 1 / m.weights.shape[1])},
    "the diffusivity": lambda m: {"diffusivity": 0.5},
    "a diagnostic": lambda m: {"diagnostics": {}},
    "the promise": lambda m: {"certificate": replace(m.certificate, target_epsilon=5.0)},
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forgery_that_is_sealed_again_passes_without_a_key_and_not_with_it(
    signed, keys, forgery, tmp_path
):
    made = replace(signed, **FORGERIES[forgery](signed)).sealed()
    kept = replace(made.certificate, signature=signed.certificate.signature)
    replace(made, certificate=kept).save(tmp_path / "m")
    forged = pt.load(tmp_path / "m")
    forged.verify()
    with pytest.raises(InputError, match="changed after it was signed"):
        forged.verify(keys[0][1])


def test_a_forger_with_a_key_of_their_own_is_found(signed, keys, tmp_path):
    forged = replace(signed, diffusivity=0.5).sealed().signed(keys[1][0])
    forged.verify(keys[1][1])
    with pytest.raises(InputError, match="signed by another key"):
        forged.verify(keys[0][1])
    boast = {**forged.certificate.signature, "key": signatures.fingerprint(keys[0][1])}
    named = replace(forged, certificate=replace(forged.certificate, signature=boast))
    with pytest.raises(InputError, match="changed after it was signed"):
        named.verify(keys[0][1])


@pytest.mark.parametrize("text", ["", "!!", "AAAA", "A" * 88, "a" * 10**4, "ä" * 88])
def test_signatures_that_are_none(signed, keys, text):
    wrong = {**signed.certificate.signature, "ed25519": text}
    with pytest.raises(InputError, match="changed after it was signed"):
        signatures.check_signature(replace(signed.certificate, signature=wrong), keys[0][1])


@pytest.mark.parametrize(
    "signature",
    ["x", 5, [], {}, {"key": "a"}, {"key": 5, "ed25519": "a"}, {"key": "a\n", "ed25519": ""}],
)
def test_signatures_of_another_form_are_refused_when_read(signed, signature):
    with pytest.raises(InputError, match="its signature cannot be read"):
        Certificate.from_dict({**signed.certificate.to_dict(), "signature": signature})


def test_what_does_not_add_up_is_not_signed(model, keys):
    boast = replace(model, certificate=replace(model.certificate, epsilon=0.01)).sealed()
    with pytest.raises(InputError, match="does not follow"):
        boast.signed(keys[0][0])


# The command line -----------------------------------------------------------------------------


def test_sign_and_verify(files, keys, capsys):
    model, certificate = files
    private, public = keys[0]
    words = ["sign", str(model), "--key", str(private), "--certificate", str(certificate)]
    assert cli.main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["key"] == signatures.fingerprint(public)
    assert told["signed"] == [str(model), str(certificate)]
    words = ["verify", str(model), "--certificate", str(certificate)]
    assert cli.main([*words, "--key", str(public)]) == 0
    assert f"The key in '{public}' has signed it" in capsys.readouterr().out
    assert cli.main(words) == 0
    assert "the signature was not checked" in capsys.readouterr().out
    assert cli.main([*words, "--key", str(public), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["signed_by"], told["signature_checked"]) == (signatures.fingerprint(public), True)
    assert pt.load(model).certificate == Certificate.read(certificate)


def test_signing_twice_changes_nothing(files, keys):
    words = ["sign", str(files[0]), "--key", str(keys[0][0])]
    assert cli.main(words) == 0
    once = files[0].read_bytes()
    assert cli.main(words) == 0
    assert files[0].read_bytes() == once


def test_a_certificate_from_before_the_signature_is_still_the_right_one(files, keys):
    assert cli.main(["sign", str(files[0]), "--key", str(keys[0][0])]) == 0
    assert cli.main(["verify", str(files[0]), "--certificate", str(files[1])]) == 0


def test_another_signature_is_replaced_by_force_only(files, keys, capsys):
    words = ["sign", str(files[0]), "--key"]
    assert cli.main([*words, str(keys[0][0])]) == 0
    before = files[0].read_bytes()
    assert cli.main([*words, str(keys[1][0])]) == 2
    assert files[0].read_bytes() == before
    assert cli.main([*words, str(keys[1][0]), "--force"]) == 0
    assert pt.load(files[0]).certificate.signed_by == signatures.fingerprint(keys[1][1])


def test_a_resealed_forgery_is_found_on_the_command_line(files, keys, capsys):
    model = files[0]
    assert cli.main(["sign", str(model), "--key", str(keys[0][0])]) == 0
    header, members = unpacked(model)
    header["certificate"]["found"] = {"resolution in time": "as fine as can be"}
    model.write_bytes(sealed(header, members))
    assert cli.main(["verify", str(model)]) == 0
    capsys.readouterr()
    assert cli.main(["verify", str(model), "--key", str(keys[0][1])]) == 2
    shown = capsys.readouterr()
    assert (shown.out, shown.err.count("\n")) == ("", 1)
    assert "changed after it was signed" in shown.err


def test_reading_and_verifying_without_a_key_need_no_package(signed, tmp_path, monkeypatch):
    signed.save(tmp_path / "m")
    monkeypatch.setitem(sys.modules, "cryptography", None)
    assert pt.load(tmp_path / "m").verify() > 0
    with pytest.raises(InputError, match=r"pip install 'privtraj\[sign\]'"):
        pt.load(tmp_path / "m").verify(tmp_path / "key.pub")


@pytest.mark.skipif(sys.platform != "linux", reason="reads the names of open files in /proc")
def test_keys_are_on_the_disk_before_they_are_used(tmp_path, monkeypatch):
    synced = []

    def watched(file):
        path = Path(os.readlink(f"/proc/self/fd/{file}"))
        assert path.read_bytes()
        synced.append(path.name)

    monkeypatch.setattr(os, "fsync", watched)
    signatures.new_key(tmp_path / "key")
    assert synced == ["key", "key.pub"]
