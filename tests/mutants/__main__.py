"""Plant every break in a copy of the source and demand that the tests notice.

    make mutants                      all of them
    make mutants ONLY="NAME ..."      some of them
    make operators SAMPLE=all         all that operators find instead (`shards`), on many cores
    make operators                    what became of them in the last whole run, and a dozen anew

Each mutant names the tests that must fail. Where they pass, the whole fast tier is asked before the
mutant is called a survivor. A test counts only if it fails by an assertion: source that no longer
imports is no break of privacy.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from mutants import operators, shards, suite, verdict
from mutants.operators import Planted
from mutants.suite import ROOT, SOURCE, Mutant

CAUGHT, ELSEWHERE, SURVIVED, USELESS = "caught", "caught elsewhere", "SURVIVED", "USELESS"
WORKERS = os.cpu_count() or 2
MOST_SECONDS = 3600  # of one run of pytest


class Outcome(NamedTuple):
    """What became of a mutant, and which test says so, or why none can."""

    name: str
    said: str
    why: str
    seconds: float


class Tested(NamedTuple):
    """Tests of a copy: those that failed by an assertion, otherwise, and not at all."""

    caught: list[str]
    broke: list[str]
    passed: list[str]


def judged(mutant: Mutant | Planted, cache: Path, otherwise: Sequence[str]) -> Outcome:
    """Plant it and run its tests; where they pass, those of `otherwise`."""
    start = time.monotonic()

    def outcome(said: str, why: str) -> Outcome:
        return Outcome(mutant.name, said, why, time.monotonic() - start)

    with tempfile.TemporaryDirectory(prefix="privtraj-mutant-") as folder:
        try:
            mutant.plant(copied(Path(folder)))
        except suite.StaleMutant as error:
            return outcome(USELESS, str(error))
        done, said = tested(Path(folder), mutant.caught_by, cache), CAUGHT
        if not (done.caught or done.broke) and otherwise:
            done, said = tested(Path(folder), otherwise, cache, "-x"), ELSEWHERE
    if said == ELSEWHERE and done.caught and _failing(cache, done.caught):
        return outcome(SURVIVED, f"{done.caught[0]} fails without it, too")
    if done.caught:
        return outcome(said, done.caught[0])
    if done.broke:
        return outcome(USELESS, f"no assertion failed, but {done.broke[0]}")
    return outcome(SURVIVED, mutant.breaks)


def copied(folder: Path) -> Path:
    """The package, copied into a folder."""
    ignored = shutil.ignore_patterns("__pycache__")
    return Path(shutil.copytree(SOURCE, folder / "privtraj", ignore=ignored))


def tested(folder: Path, tests: Sequence[str], cache: Path, *options: str) -> Tested:
    """The tests against the copy in a folder; whatever JAX compiles is kept in the cache."""
    if not tests:
        return Tested([], [], [])
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(
            [str(folder), str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
        ),
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        verdict.COPY: str(folder),
        verdict.REPORT: str(report),
    }
    command = [sys.executable, "-m", "pytest", "-p", "mutants.verdict", "-p", "no:cacheprovider"]
    try:
        ran = subprocess.run(
            [*command, *options, *tests],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=MOST_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return Tested([], [f"the tests took more than {MOST_SECONDS} s"], [])
    if ran.returncode > 1 or not report.exists():  # no tests, or pytest itself failed
        told = (ran.stderr or ran.stdout).strip().splitlines() or ["nothing"]
        return Tested([], [f"pytest said: {told[-1]}"], [])
    return Tested(**json.loads(report.read_text("utf-8")))


def check_sound(mutants: Sequence[Mutant], cache: Path) -> None:
    """The tests that mutants name pass on the source as it is."""
    tests = sorted({test for mutant in mutants for test in mutant.caught_by})
    shares = [tests[part::WORKERS] for part in range(WORKERS)]
    with ThreadPoolExecutor(WORKERS) as pool:
        failed = [test for share in pool.map(partial(_failing, cache), shares) for test in share]
    if failed:
        sys.exit("these tests fail without any mutant:\n  " + "\n  ".join(failed))


def _failing(cache: Path, tests: Sequence[str]) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="privtraj-sound-") as folder:
        copied(Path(folder))
        done = tested(Path(folder), tests, cache)
    return [*done.caught, *done.broke]


def by_operators(asked: argparse.Namespace) -> int:
    """Plant what operators find: all, those that are named, or a sample of what was caught in the
    last whole run, before the very tests that caught it; 1 if one survives unexplained."""
    found = operators.planted()
    if unknown := sorted(set(asked.names) - {each.name for each in found}):
        sys.exit(f"no break is called {', '.join(unknown)}")
    if asked.names or asked.sample == "all":
        mutants = [each for each in found if each.name in asked.names] if asked.names else found
        print(f"{len(mutants)} of {len(found)} breaks by operators", flush=True)
        return shards.run(mutants, asked.out, asked.workers, asked.minutes)
    version, rows = shards.stored(found)
    print(f"breaks by operators, the whole run of version {version}", flush=True)
    shards.told(list(rows.values()))  # new ones are listed, and planted by the next whole run
    known = [each for each in found if "::" in rows[each.name].by]
    again = operators.sampled(known, int(asked.sample), asked.seed)
    print(f"{len(again)} of them planted again, seed {asked.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="privtraj-compiled-") as folder:
        tests = [replace(each, caught_by=[rows[each.name].by]) for each in again]
        outcomes = planted_at_once([partial(_noticed, each, Path(folder)) for each in tests])
    caught = sum(each.said == CAUGHT for each in outcomes)
    print(f"{caught} of {len(again)} caught by the same tests as in that run")
    survived = any(row.said == shards.SURVIVED for row in rows.values())
    return int(survived or caught < len(again))


def _noticed(mutant: Planted, cache: Path) -> Outcome:
    """Of a break by an operator: tests that fail for any reason have noticed."""
    outcome = judged(mutant, cache, ())
    failed = outcome.said == USELESS and outcome.why.startswith("no assertion failed, but tests/")
    return outcome._replace(said=CAUGHT, why=mutant.caught_by[0]) if failed else outcome


def planted_at_once(jobs: Sequence[Callable[[], Outcome]]) -> list[Outcome]:
    """What became of each, told as soon as it is known, in order."""
    outcomes = []
    with ThreadPoolExecutor(WORKERS) as pool:
        for job in [pool.submit(each) for each in jobs]:
            outcomes.append(job.result())
            print("{1:16} {3:5.0f} s  {0:38} {2}".format(*outcomes[-1]), flush=True)
    return outcomes


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="mutants to plant; all if none is named")
    parser.add_argument("--unchecked", action="store_true", help="do not test the source as it is")
    parser.add_argument("--named-only", action="store_true", help="leave out the fast tier")
    parser.add_argument("--operators", action="store_true", help="breaks by operators instead")
    parser.add_argument("--sample", default="all", help="how many of these, of the last whole run")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--out", type=Path, default=Path("results/operators"), help="their results")
    parser.add_argument("--workers", type=int, default=WORKERS, help="how many at once")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin none after so many")
    asked = parser.parse_args(arguments)
    if asked.operators:
        return by_operators(asked)
    known = suite.load()
    if unknown := sorted(set(asked.names) - set(known)):
        parser.error(f"no mutant is called {', '.join(unknown)}")
    mutants = [known[name] for name in asked.names or known]
    with tempfile.TemporaryDirectory(prefix="privtraj-compiled-") as folder:
        cache = Path(folder)
        if not asked.unchecked:
            check_sound(mutants, cache)
        otherwise = [] if asked.named_only else suite.fast_tier()
        outcomes = planted_at_once(
            [partial(judged, mutant, cache, otherwise) for mutant in mutants]
        )
    if not asked.names:  # all of them: read by experiments/attest.py
        (ROOT / "results").mkdir(exist_ok=True)
        with (ROOT / "results" / "mutants.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([Outcome._fields, *outcomes])
    caught = sum(outcome.said in (CAUGHT, ELSEWHERE) for outcome in outcomes)
    print(f"{caught} of {len(outcomes)} mutants caught")
    return int(caught < len(outcomes))


if __name__ == "__main__":
    sys.exit(main())
