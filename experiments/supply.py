"""What a release is built from: python experiments/supply.py lock | check [ADVISORIES] | sbom

lock    writes requirements.lock: every package that the release needs, as installed here, with the
        sha256 of its wheel (as pip finds it) and of what was installed of it; no address of any
        index. `pip install --require-hashes -r requirements.lock` takes it.
check   compares this environment with requirements.lock; exit code 1 if anything differs. Given
        known weaknesses as well (a file, a folder or a zip archive of JSON records of OSV, as
        osv.dev exports them for PyPI, or what `pip-audit --format json` has written), also if one
        of them is of a locked version.
sbom    writes results/sbom.json: CycloneDX 1.5, each package with version, licence and hash.
"""

import argparse
import hashlib
import json
import re
import subprocess
import sys
import uuid
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
HEAD = "# Written by `make lock`: package, version, sha256 of its wheel and of what is installed.\n"
_BY_PIP = {"INSTALLER", "REQUESTED", "RECORD", "direct_url.json"}


def plain(name: str) -> str:
    """A name as indexes know it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(extras: tuple[str, ...] = ("sign",)) -> dict[str, metadata.Distribution]:
    """What privtraj needs, and what that needs, as installed here."""
    found: dict[str, metadata.Distribution] = {}
    ahead = [("privtraj", extras)]
    while ahead:
        name, wanted = ahead.pop()
        try:
            one = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            sys.exit(f"{name} is needed and not installed")
        for line in one.requires or ():
            asked = Requirement(line)
            marked = asked.marker
            holds = marked is None or any(marked.evaluate({"extra": x}) for x in (*wanted, ""))
            if holds and plain(asked.name) not in found:
                found[plain(asked.name)] = metadata.distribution(asked.name)
                ahead.append((asked.name, tuple(asked.extras)))
    return dict(sorted(found.items()))


def installed(one: metadata.Distribution) -> str:
    """sha256 of the hashes of all files that came with a package: not of what pip adds itself."""
    lines = sorted(
        f"{file} {file.hash.value}"
        for file in one.files or ()
        if file.hash and not str(file).startswith("..") and file.name not in _BY_PIP
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def lock() -> str:
    """The lines of the lock, in which pip alone says what hash a wheel has."""
    here = needed()
    pinned = [f"{name}=={one.version}" for name, one in here.items()]
    options = ["--quiet", "--dry-run", "--ignore-installed", "--no-deps", "--report", "-"]
    command = [sys.executable, "-m", "pip", "install", *options, *pinned]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    wheels = {
        plain(one["metadata"]["name"]): one["download_info"]["archive_info"]["hashes"]["sha256"]
        for one in json.loads(done.stdout)["install"]
    }
    lines = (
        f"{pin} --hash=sha256:{wheels[name]}  # installed sha256:{installed(here[name])}\n"
        for pin, name in zip(pinned, here, strict=True)
    )
    return HEAD + "".join(lines)


def check(advisories: Path | None = None) -> int:
    """What differs from the lock, and which weaknesses are known of it, a line each."""
    locked = {}
    for line in LOCK.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            name, _, rest = line.partition("==")
            locked[name] = (rest.split()[0], re.findall(r"# installed sha256:(\w+)", line))
    here, wrong = needed(), []
    for name in sorted(locked.keys() | here.keys()):
        if name not in here or name not in locked:
            wrong.append(f"{name} is {'locked and not needed' if name in locked else 'not locked'}")
            continue
        version, hashes = locked[name]
        if here[name].version != version:
            wrong.append(f"{name} is {here[name].version}, and {version} is locked")
        elif hashes and installed(here[name]) not in hashes:
            wrong.append(f"{name} {version} has other files than the locked one")
    said = f"{len(locked)} packages are as locked"
    if advisories is not None:
        known = list(weaknesses(advisories))
        said += f", and none of {len(known)} known weaknesses is of them"
        for name, version in ((name, version) for name, (version, _) in locked.items()):
            for package, number, affected in known:
                if package == name and is_affected(version, affected):
                    wrong.append(f"{name} {version} has a known weakness: {number}")
    print("\n".join(wrong) or said)
    return int(bool(wrong))


def weaknesses(path: Path) -> Iterator[tuple[str, str, dict]]:
    """Package, number, and which versions have it, in the words of OSV."""
    if path.is_dir():
        texts = [file.read_bytes() for file in sorted(path.glob("*.json"))]
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            texts = [archive.read(name) for name in archive.namelist() if name.endswith(".json")]
    else:
        texts = [path.read_bytes()]
    if not texts:
        sys.exit(f"{path} holds no JSON records of OSV")
    for text in texts:
        read = json.loads(text)
        if isinstance(read, dict) and "dependencies" in read:  # of pip-audit
            for one in read["dependencies"]:
                for found in one.get("vulns", ()):
                    yield plain(one["name"]), found["id"], {"versions": [one["version"]]}
            continue
        records = read.get("vulns", [read]) if isinstance(read, dict) else read
        for record in records:
            if not record.get("withdrawn"):
                for affected in record.get("affected", ()):
                    if affected["package"]["ecosystem"] == "PyPI":
                        yield plain(affected["package"]["name"]), record["id"], affected


def is_affected(version: str, affected: dict) -> bool:
    """Whether it is listed, or in a range: from a version on, until one that is mended, or up to
    the last. What cannot be compared counts as affected."""
    if version in affected.get("versions", ()):
        return True
    for range_ in affected.get("ranges", ()):
        if range_["type"] == "GIT":  # commits, which no wheel tells
            continue
        try:
            here, inside = Version(version), False
            events = [next(iter(event.items())) for event in range_["events"]]
            for kind, at in sorted(events, key=lambda event: Version(event[1])):
                if kind == "introduced":
                    inside |= here >= Version(at)
                elif kind == "fixed":
                    inside &= here < Version(at)
                elif kind == "last_affected":
                    inside &= here <= Version(at)
        except InvalidVersion:
            return True
        if inside:
            return True
    return False


def sbom() -> dict:
    """CycloneDX 1.5; the same environment gives the same file."""
    parts = []
    for name, one in needed().items():
        said = one.metadata.get("License-Expression") or one.metadata.get("License") or ""
        part = {
            "type": "library",
            "name": name,
            "version": one.version,
            "purl": f"pkg:pypi/{name}@{one.version}",
            "hashes": [{"alg": "SHA-256", "content": installed(one)}],
        }
        if said and len(said) < 100:
            part["licenses"] = [{"license": {"name": said}}]
        parts.append(part)
    own = metadata.version("privtraj")
    number = uuid.uuid5(uuid.NAMESPACE_OID, json.dumps([own, parts], sort_keys=True))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{number}",
        "version": 1,
        "metadata": {"component": {"type": "library", "name": "privtraj", "version": own}},
        "components": parts,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("action", choices=("lock", "check", "sbom"))
    parser.add_argument("advisories", nargs="?", type=Path, help="of check: known weaknesses")
    asked = parser.parse_args()
    if asked.action == "check":
        return check(asked.advisories)
    if asked.action == "lock":
        LOCK.write_text(lock(), encoding="utf-8")
        print(f"written: {LOCK.name}")
    else:
        out = ROOT / "results" / "sbom.json"
        out.parent.mkdir(exist_ok=True)
        out.write_text(json.dumps(sbom(), indent=2) + "\n", encoding="utf-8")
        print(f"written: results/{out.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
