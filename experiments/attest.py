"""What was tested of this version, signed: make attest KEY=FILE, a key of `privtraj sign --new-key`

Reads what `make test`, `make test-all`, `make mutants`, `make operators` and `make audit` have left
in results/, and writes results/attestation.json: the version, the hash of every file of the trusted
base, these results, libraries and machine. Results that are older than the newest file of the
source are of another version, and are stated as such. `privtraj verify --attestation FILE` tells
whether a model was made by the attested code.
"""

import argparse
import csv
import datetime as dt
import hashlib
import json
import os
import platform
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from importlib import metadata
from pathlib import Path

from privtraj.base import __version__
from privtraj.privacy import certificate, signatures

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "privtraj"
LIBRARIES = ("numpy", "scipy", "dp-accounting", "jax", "jaxlib", "pyarrow", "pandas", "shapely")


def tests(path):
    """Numbers of a report of pytest."""
    suites = ET.parse(path).getroot().iter("testsuite")
    names = ("tests", "failures", "errors", "skipped")
    return dict(sum((Counter({n: int(s.get(n, 0)) for n in names}) for s in suites), Counter()))


def rows(path):
    """How many rows of a table of breaks say what."""
    with path.open(encoding="utf-8", newline="") as file:
        return dict(Counter(row["said"] for row in csv.DictReader(file)))


def audit(path):
    """What was claimed, what the strongest attack has shown, and whether anything contradicts."""
    said = json.loads(path.read_text("utf-8"))
    shown = {name: said[name] for name in ("claim", "runs", "confidence", "violated")}
    strongest = said["strongest"]
    least = max(strongest["epsilon_threshold"] or 0.0, strongest["epsilon_shape"] or 0.0)
    return {**shown, "epsilon that attacks have shown": least}


RESULTS = {
    "tests": ("tests.xml", tests),
    "thorough tests": ("thorough.xml", tests),
    "planted breaks": ("mutants.csv", rows),
    "breaks by operators": ("operators/outcomes.csv", rows),
    "audit": ("audit.json", audit),
}


def statement(folder: Path) -> dict:
    """All that is known, unsigned."""
    newest = max(path.stat().st_mtime for path in SOURCE.rglob("*.py"))
    results = {}
    for name, (file, read) in RESULTS.items():
        path = folder / file
        if not path.exists():
            results[name] = "not run"
        elif path.stat().st_mtime < newest:
            results[name] = "of an older source"
        else:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            results[name] = {**read(path), "sha256": digest}
    trusted = sorted((SOURCE / "privacy").glob("*.py"))
    return {
        signatures.ATTESTATION: 1,
        "version": __version__,
        "source_sha256": certificate.source(),
        "files": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in trusted},
        "results": results,
        "libraries": {name: metadata.version(name) for name in LIBRARIES},
        "machine": {
            "system": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
            "cores": os.cpu_count(),
        },
        "date": dt.date.today().isoformat(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--key", type=Path, required=True, help="private key that signs it")
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    asked = parser.parse_args()
    said = statement(asked.results)
    out = asked.results / "attestation.json"
    asked.results.mkdir(exist_ok=True)
    signed = signatures.signed_statement(said, asked.key)
    out.write_text(json.dumps(signed, indent=2) + "\n", encoding="utf-8")
    for name, result in said["results"].items():
        print(f"{name:24}{result}")
    print(f"written: {out.name}, signed by key sha256 {signed['signature']['key']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
