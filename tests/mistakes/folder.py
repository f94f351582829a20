"""The folder of small files, good and bad, in which the mistakes of the tables are made."""

import dataclasses
import hashlib
import io
import json
import zipfile

import anndata
import numpy as np
import pandas as pd
import pyarrow as pa
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import privtraj as pt
from mixed_models import build
from privtraj import datasets
from privtraj.export import tables as export_tables
from privtraj.privacy.certificate import Certificate
from privtraj.privacy.ledger_file import LedgerFile

SECRETS = ("123.4567", "Ottoline")  # in the data, and never in a message

HEAD = "id,age,height,weight\n"
TEXTS = {
    "empty.csv": "",
    "header.csv": HEAD,
    "widest.csv": HEAD.strip() + "," * 100_000 + "\n",
    "ragged.csv": HEAD + f"Ottoline,1,{SECRETS[0]}\nb,1,2,3,4\n",
    "rounded.csv": HEAD + "".join(f"{k}{'' if k else '.1e+11'},1,20,3\n" for k in range(20)),
    "unseen.csv": HEAD + "".join(f"{k}{'' if k else chr(8203)},1,20,3\n" for k in range(20)),
    "torn.csv": HEAD + "".join(f'"{k},1,{SECRETS[0]},3\n' for k in range(20)),
    "words.csv": HEAD + "".join(f"{k},1,{SECRETS[0]},x{SECRETS[0]}\n" for k in range(20)),
    "often.csv": HEAD + "".join(f"Ottoline{k // 2},{k},{SECRETS[0]},3\n" for k in range(20)),
    "one.csv": HEAD + "".join(f"Ottoline,{k},{SECRETS[0]},3\n" for k in range(20)),
    "holes.csv": HEAD + "".join(f"{k},1,{SECRETS[0]},{k or ''}\n" for k in range(20)),
    "nameless.csv": HEAD + "".join(f"{k or ''},1,{SECRETS[0]},3\n" for k in range(20)),
    "infinite.csv": HEAD + "".join(f"{k},1,{SECRETS[0]},{'' if k else 'inf'}\n" for k in range(20)),
    "few.csv": HEAD + "".join(f"{k},1,{SECRETS[0]},3\n" for k in range(5)),
    "wide.csv": ",".join(f"column{k}" for k in range(40)) + "\n",
    "twins.csv": "id,age,height,height\n" + f"Ottoline,1,{SECRETS[0]},3\n" * 20,
    "record.csv": f"Ottoline,3.5,{SECRETS[0]},3\n" * 20,
    "semicolons.csv": "id;age;height\n" + "".join(f"{k};1;123,4567\n" for k in range(20)),
    "american.csv": "id,age,height\n"
    + "".join(f"{k},01/31/2024,{SECRETS[0]}\n" for k in range(20)),
    "units.csv": "id,age,height [cm],height [in]\n" + f"Ottoline,1,{SECRETS[0]},3\n" * 20,
    "feet/a.csv": "id,age,height [cm]\n" + f"Ottoline,1,{SECRETS[0]}\n" * 20,
    "feet/b.csv": "id,age,height [in]\n" + f"Ottoline,1,{SECRETS[0]}\n" * 20,
    "mixed/a.csv": HEAD,
    "mixed/b.parquet": "",
    "hollow/readme.md": "",
    "full/kept.txt": "",
    "clinic.txt": HEAD,
    "clinic.duckdb": "not a database",
    "broken.parquet": "PAR1",
    "broken.h5ad": "HDF",
    "taken.privtraj": "kept",
    "taken.csv": "kept",
    "taken.json": "kept",
    "taken.html": "kept",
    "taken.png": "kept",
    "taken.toml": "kept",
    "notes.ledger": "Our ledger\n",
    "strokes.npz": "no strokes",
    "certificate.json": "{}",
    "list.json": "[]",
    # configurations
    "fit.toml": """
        data = "clinic.csv"
        time = "age"
        person = "id"
        feature = [["height", 40, 210]]
        time_range = [0, 20]
        bins = 5
        epsilon = 1
        delta = 1e-5
        out = "new.privtraj"
    """,
    "open.toml": 'data = "clinic.csv"\nfeature = [["height", "<low>", "<high>"]]\n',
    "typo.toml": "epsilonn = 1\n",
    "strange.toml": "zebra = 1\n",
    "unknown.toml": '[columns.sex]\nvalues = "<values>"\n',
    "years.toml": "columns.visit = { kind = 'date', low = 1950, high = 2010 }\n",
    "dialect.toml": 'csv.dates = "<dates>"\n',
    "commas.toml": 'csv = ["decimal"]\n',
    "flat.toml": 'columns = ["sex", "smoker"]\n',
    "large.toml": "# " + "x" * 2**18,
    "broken.toml": "epsilon = 1\ndelta =\n",
    "wrong.toml": 'cap_epsilon = "much"\n',
    "both.toml": "bins = 5\nbin_times = [0, 1]\n",
    "deep.toml": "epsilon = " + "[" * 2000,
}


def clinic(n=200):
    """The growth clinic with a date of visit; the first child is the secret one."""
    table = datasets.growth_clinic(n).to_pandas()
    table.loc[0, ["id", "height"]] = [SECRETS[1], float(SECRETS[0])]
    table["visit"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(table["age"] * 52, unit="D")
    return pa.Table.from_pandas(table, preserve_index=False)


def snapshots(**changes):
    public = {"bounds": {"height": (40, 210)}, "time_range": (0, 20), "bins": 5} | changes
    return pt.Snapshots.from_table(clinic(), **{"time": "age", "person": "id"} | public)


def _fitted(**settings):
    how = {"measure": "counts", "cells": 4, "particles": 16} | settings
    return pt.TrajectorySynthesizer(4.0, 1e-4, **how).fit(snapshots())


def _rewritten(path, target, change):
    """A model file with changed members, its checksums made right."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    header = json.loads(members["model.json"])
    change(header, members)
    members["model.json"] = json.dumps(header).encode()
    members["model.sha256"] = hashlib.sha256(members["model.json"]).hexdigest().encode()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(name, data)


def _models(folder):
    """A good model, and others of which something is not as it should be."""
    good = folder / "model.privtraj"
    model = _fitted()
    model.save(good)
    _fitted(seed=1).save(folder / "seeded.privtraj", not_private=True)
    (folder / "model.json").write_text(model.certificate.to_json())
    wrong = {**model.certificate.to_dict(), "epsilon": 0.5}
    (folder / "wrong.json").write_text(json.dumps(wrong))
    days = {"numeric_times": model.numeric_times, "knots": model.knots}
    days = {name: (18_262 + 18 * times) * 86_400.0 for name, times in days.items()}
    _resaved(model, folder / "dated.privtraj", datetime=True, **days)
    _resaved(model, folder / "boastful.privtraj", certificate=Certificate.from_dict(wrong))
    _resaved(model, folder / "weight.privtraj", features=("weight",))
    places = {"particles": np.repeat(model.particles, 2, axis=-1), "features": ("lon", "lat")}
    near, far = np.array([[[-10.0, 10.0], [40.0, 60.0]], [[-10.0, 1e6], [40.0, 60.0]]])
    _resaved(model, folder / "map.privtraj", bounds=near, **places)
    _resaved(model, folder / "metres.privtraj", bounds=far, **places)
    spent = dataclasses.replace(model.certificate, target_epsilon=model.certificate.epsilon / 2)
    _resaved(model, folder / "spent.privtraj", certificate=spent)
    unread = tuple({"mechanism": entry["mechanism"]} for entry in model.certificate.ledger)
    unread = dataclasses.replace(model.certificate, ledger=unread)
    _resaved(model, folder / "unread.privtraj", certificate=unread)
    _resaved(model, folder / "weightless.privtraj", weights=0 * model.weights)
    build().save(folder / "ward.privtraj")  # of columns of every kind
    _damaged(good, folder)
    _signed(model, folder)


def _signed(model, folder):
    """A model with a signature, one that was changed after it, and keys of all kinds."""
    for name in ("clinic.key", "other.key", "open.key"):
        pt.new_key(folder / name)
    (folder / "open.key").chmod(0o644)
    (folder / "private.pub").write_bytes((folder / "clinic.key.pub").read_bytes())
    (folder / "private.pub").chmod(0o600)
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    lock = serialization.BestAvailableEncryption(b"secret")
    locked = Ed25519PrivateKey.generate().private_bytes(pem, pkcs8, lock)
    (folder / "locked.key").write_bytes(locked)
    (folder / "locked.key").chmod(0o600)
    signed = model.signed(folder / "clinic.key")
    signed.save(folder / "signed.privtraj")
    forged = dataclasses.replace(signed, diffusivity=0.5).sealed()
    kept = dataclasses.replace(forged.certificate, signature=signed.certificate.signature)
    dataclasses.replace(forged, certificate=kept).save(folder / "resealed.privtraj")


def _damaged(good, folder):
    """Files that were a model, or look like one."""
    data = good.read_bytes()
    (folder / "cut.privtraj").write_bytes(data[:-40])
    (folder / "other.privtraj").write_bytes(_zip({"readme.txt": b"hello"}))
    (folder / "bomb.privtraj").write_bytes(_zip({"model.json": bytes(2**25)}))
    (folder / "deep.privtraj").write_bytes(_zip({"model.json": b"[" * 100_000}))
    at = data.index(b"model.json") + len("model.json")  # where its packed text begins
    (folder / "scratched.privtraj").write_bytes(data[:at] + b"\xff" + data[at + 1 :])
    _rewritten(good, folder / "future.privtraj", lambda header, _: header.update(format=4))
    _rewritten(good, folder / "renamed.privtraj", lambda header, _: header.update(time_name="day"))
    _rewritten(good, folder / "short.privtraj", lambda header, _: header.pop("features"))
    _rewritten(good, folder / "more.privtraj", lambda _, members: members.update(extra=b""))
    _rewritten(good, folder / "edited.privtraj", _with_other_bounds)


def _resaved(model, path, **changes):
    """A model of numbers, whatever they are called now and wherever they are."""
    dataclasses.replace(model, columns=(), **changes).sealed().save(path)


def _with_other_bounds(_, members):
    members["bounds.npy"] = members["times.npy"]


def _zip(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file.getvalue()


def _cells(folder):
    """Single cells, one name of which stands for two things."""
    obs = pd.DataFrame({"twice": np.arange(20.0)}, index=[str(k) for k in range(20)])
    var = pd.DataFrame(index=["twice"])
    data = anndata.AnnData(np.ones((20, 1)), obs, var, obsm={"X_pca": np.ones((20, 2))})
    data.write_h5ad(folder / "cells.h5ad")
    people = pd.DataFrame({"id": obs.index}, index=obs.index)
    without = anndata.AnnData(obs=people, var=pd.DataFrame(index=["hour", "gene"]))
    without.write_h5ad(folder / "genes.h5ad")


def _ledgers(folder):
    """One that is nearly used up, and others that somebody has edited or emptied."""
    ledger = LedgerFile(folder / "clinic.ledger", cap_epsilon=3, cap_delta=1e-3)
    ledger.charge(2.4, 1e-4, "add-remove", "a histogram")
    ledger.charge(0.1, 1e-4, "add-remove", "a mean")
    text = (folder / "clinic.ledger").read_text()
    (folder / "edited.ledger").write_text(text.replace("2.4", "0.4"))
    (folder / "emptied.ledger").touch()
    (folder / "emptied.ledger.seal").write_bytes((folder / "clinic.ledger.seal").read_bytes())
    known = LedgerFile(folder / "known.ledger", cap_epsilon=3, cap_delta=1e-3)
    known.reserve(snapshots()._digest, 1.0, 1e-5, "add-remove", "a fit")


def fill(folder):
    """Write all of it."""
    known = {"privtraj attestation": 1, "version": "0.1", "date": "2026-01-31", "results": {}}
    known |= {"source_sha256": "0" * 64, "signature": {"key": "k", "ed25519": "s"}}
    (folder / "attested.json").write_text(json.dumps(known))
    for name, text in TEXTS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    export_tables.write_table(clinic(), folder / "clinic.csv")
    export_tables.write_table(clinic(), folder / "clinic.parquet")
    (folder / "latin.csv").write_bytes("id,age,höhe\n".encode("latin-1"))
    (folder / "latin.toml").write_bytes('time = "höhe"\n'.encode("latin-1"))
    (folder / "folder.privtraj").mkdir()
    _cells(folder)
    _models(folder)
    _ledgers(folder)
