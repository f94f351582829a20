"""Breaks by operators, planted on all cores, each before the tests that pass its very statement.

1. Every test of `ASKED` runs once on the source as it is, traced (`reach`): which lines it passes
   and how long it takes. Tests that fail or are skipped there are not asked. Kept in reach.json.gz.
2. Each break is judged by tests that pass its statement: those that the list names for its file
   first, then those of its file's own tests, then the quickest. In rounds: all breaks get some
   seconds of tests, those that live on get more. A test that fails must pass without the break.
3. outcomes.csv holds a row for each break. A later run goes on from there: what was caught is not
   planted again unless its file has changed; what survived is. A whole run is kept beside this
   file, as operators.csv: its version, and of each break what it was and which test caught it.

Processes are forked from one that has imported the libraries, and hold a core each. What does not
end within five times its usual time is caught: it was noticed.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from compileall import compile_dir
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from mutants import operators, reach, verdict
from mutants.operators import ROOMS, Planted
from mutants.suite import HERE, ROOT, SOURCE

CAUGHT, EXPLAINED, SURVIVED, OPEN = "caught", "explained", "SURVIVED", "not planted"
STORED = HERE / "operators.csv"
KEPT = ("name", "said", "by", "breaks")
LATE = "no time is left"
ASKED = ("tests/privacy", "tests/measures", "tests/cli", "tests/assess", "tests/stream")
ASKED += ("tests/test_*.py",)
NOT_ASKED = {"test_docs.py", "test_devices.py", "test_journeys.py", "test_precision.py"}
NOT_ASKED |= {"test_contributing.py", "test_floors.py", "test_mistakes.py", "test_plot.py"}
NOT_ASKED |= {"test_fuzz.py", "test_places.py", "test_hostile_files.py"}
ROUNDS = (4.0, 20.0, 90.0)  # seconds of tests that a break has to live through
PARTS = 4  # of a test file with more than so many bytes: each is traced by itself
LARGE = 12_000
LIBRARIES = ["pytest", "hypothesis.strategies", "scipy.optimize", "scipy.stats", "scipy.spatial"]
LIBRARIES += ["jax.numpy", "pandas", "pyarrow.csv", "pyarrow.parquet", "dp_accounting.pld", "ot"]
LIBRARIES += ["shapely", "jinja2", "filelock"]


@dataclass
class Row:
    """What became of a break."""

    name: str
    said: str = OPEN
    by: str = ""
    asked: int = 0
    reaching: int = 0
    seconds: float = 0.0
    breaks: str = ""
    digest: str = ""


@dataclass
class Reaching:
    """A test: what it costs by itself, what its fixtures cost, and the lines that it passes."""

    test: str
    seconds: float
    fixtures: Mapping[str, float]
    lines: Mapping[str, set[int]] = field(repr=False)


class Workers:
    """Runs pytest in forked processes, one to a core, until a deadline."""

    def __init__(self, folder: Path, many: int, minutes: float) -> None:
        self._folder = folder
        self._until = time.monotonic() + 60 * minutes
        self._cores: SimpleQueue[int] = SimpleQueue()
        for core in range(many):
            self._cores.put(core)
        self._pool = ThreadPoolExecutor(many)
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder / "compiled"))
        os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"
        os.environ["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "-1"
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(LIBRARIES)
        self._package = folder / "package"
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(SOURCE, self._package, ignore=ignored)
        compile_dir(self._package, quiet=2)

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return self._until - time.monotonic()

    def map(self, function: Callable[[Any], None], jobs: Sequence[Any]) -> None:
        """All of them, as cores become free."""
        for done in [self._pool.submit(function, job) for job in jobs]:
            done.result()

    @contextmanager
    def copy(self, mutant: Planted | None = None) -> Iterator[Path]:
        """A folder with the package, broken or not; files are shared with all others."""
        with tempfile.TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True) as name:
            package = Path(name) / "privtraj"
            shutil.copytree(self._package, package, copy_function=os.link)
            if mutant:
                path = package / mutant.file
                for old in [path, *(path.parent / "__pycache__").glob(f"{path.stem}.*")]:
                    old.unlink()
                mutant.plant(package)
            yield Path(name)

    def pytest(self, folder: Path, paths: Sequence[str], limit: float, **told: str) -> str:
        """Run it; "" or why there is no result."""
        if self.left <= 0:
            return LATE
        core = self._cores.get()
        try:
            log = folder / "log"
            arguments = (folder, core, log, list(paths), told)
            process = self._context.Process(target=_pytest, args=arguments)
            process.start()
            process.join(min(limit, max(self.left, 0)))
            if process.exitcode is None:
                os.killpg(process.pid or 0, signal.SIGKILL)
                process.join()
                return LATE if self.left <= 0 else f"no end within {limit:.0f} s"
            if process.exitcode in (0, 1, 5):  # all passed, some failed, none was there
                return ""
            lines = log.read_text("utf-8", "replace").strip().splitlines() or ["nothing"]
            return f"pytest said: {lines[-1]}"
        finally:
            self._cores.put(core)


def _pytest(folder: Path, core: int, log: Path, paths: list[str], told: dict[str, str]) -> None:
    """In a process of its own."""
    os.setsid()
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[core % len(cores)]})
    with open(log, "wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(ROOT)
    before = [str(folder), str(ROOT / "tests")]
    sys.path[:0] = before
    known = filter(None, [os.environ.get("PYTHONPATH")])
    os.environ["PYTHONPATH"] = os.pathsep.join([*before, *known])
    os.environ[verdict.COPY] = str(folder)
    os.environ[verdict.REPORT] = str(folder / "report.json")
    os.environ.update(told)
    import pytest

    plugins = ["-p", "mutants.verdict", "-p", "mutants.reach", "-p", "no:cacheprovider"]
    options = ["-x", "-m", "not thorough", "--basetemp", str(folder / "tmp")]
    if reach.REACH in told:
        options.remove("-x")
    code = pytest.main([*plugins, *options, *paths])
    sys.stdout.flush()
    os._exit(int(code))


# Reach ------------------------------------------------------------------------------------------


def traced(workers: Workers, known: Path) -> list[Reaching]:
    """What every test reaches; kept in a file, by what is in the rooms and in the file of tests."""
    kept: dict[str, list[dict[str, Any]]] = {}
    if known.exists():
        kept = json.loads(gzip.decompress(known.read_bytes()))
    rooms = _digest(*(path for room in ROOMS for path in sorted((SOURCE / room).glob("*.py"))))
    found: dict[str, list[dict[str, Any]]] = {}
    todo = []
    for path in _test_files():
        key = f"{path.relative_to(ROOT).as_posix()} {_digest(path)} {rooms}"
        if key in kept:
            found[key] = kept[key]
        else:
            parts = PARTS if path.stat().st_size > LARGE else 1
            found[key] = []
            todo += [(path, key, f"{part}/{parts}") for part in range(parts)]
    todo.sort(key=lambda job: -job[0].stat().st_size)
    lock, cut = threading.Lock(), set()

    def trace(job: tuple[Path, str, str]) -> None:
        path, key, part = job
        with workers.copy() as folder:
            lines = folder / "reach"
            told = {reach.REACH: str(lines), reach.ROOMS: ",".join(ROOMS), reach.PART: part}
            why = workers.pytest(folder, [str(path)], 300, **told)
            if lines.exists():
                with lock:
                    found[key] += map(json.loads, lines.read_text("utf-8").splitlines())
        if why == LATE:
            cut.add(key)
        elif why:
            print(f"not traced to the end: {path.name} {part}: {why}", flush=True)

    workers.map(trace, todo)
    whole = {key: tests for key, tests in found.items() if key not in cut}
    known.write_bytes(gzip.compress(json.dumps(whole).encode()))
    return [
        Reaching(
            one["test"],
            one["seconds"],
            one["fixtures"],
            {k: set(v) for k, v in one["lines"].items()},
        )
        for tests in found.values()
        for one in tests
    ]


def _test_files() -> list[Path]:
    found = []
    for pattern in ASKED:
        for path in sorted(ROOT.glob(pattern)):
            found += sorted(path.glob("test_*.py")) if path.is_dir() else [path]
    return [path for path in found if path.name not in NOT_ASKED]


def _digest(*paths: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16]


def ordered(mutant: Planted, tests: Sequence[Reaching]) -> list[Reaching]:
    """Those that pass its statement, the most promising first."""
    own = f"test_{Path(mutant.file).stem}.py"
    named = {test.split("[")[0] for test in mutant.caught_by if "::" in test}

    def rank(one: Reaching) -> tuple[bool, bool, float]:
        file = one.test.split("::")[0]
        return one.test.split("[")[0] not in named, not file.endswith(own), one.seconds

    return sorted((t for t in tests if mutant.lines & t.lines.get(mutant.file, set())), key=rank)


# Outcomes ---------------------------------------------------------------------------------------


class Judge:
    """Plants breaks and writes what becomes of them."""

    def __init__(self, workers: Workers, tests: Sequence[Reaching], file: Path) -> None:
        self._workers, self._tests, self._file = workers, tests, file
        self._lock = threading.RLock()
        self._sound: dict[str, bool] = {}
        self._known = operators.explanations(operators.planted())
        self.rows: dict[str, Row] = {}

    def resume(self, mutants: Sequence[Planted]) -> list[Planted]:
        """Those that are still to be planted."""
        before: dict[str, Row] = {}
        if self._file.exists():
            with self._file.open(encoding="utf-8", newline="") as file:
                kinds = {each.name: type(each.default) for each in fields(Row)}
                for line in csv.DictReader(file):
                    row = Row(**{k: v if k == "name" else kinds[k](v) for k, v in line.items()})
                    before[row.name] = row
        todo = []
        for mutant in mutants:
            digest = hashlib.sha256(mutant.text.encode()).hexdigest()[:16]
            row = before.get(mutant.name)
            if row is None or row.said != CAUGHT or row.digest != digest:
                row = Row(mutant.name, breaks=mutant.breaks, digest=digest)
                todo.append(mutant)
            self.rows[mutant.name] = row
        return todo

    def judge(self, mutant: Planted, budget: float) -> None:
        """By tests of so many seconds, without those that it has passed in earlier rounds."""
        row, start = self.rows[mutant.name], time.monotonic()
        tests = ordered(mutant, self._tests)
        asked, cost, made = tests[row.asked :], 0.0, set()
        for many, test in enumerate(asked):
            cost += test.seconds + sum(
                seconds for name, seconds in test.fixtures.items() if name not in made
            )
            made |= test.fixtures.keys()
            if cost > budget and many:
                asked = asked[:many]
                break
        by = self._failed(mutant, asked) if asked else ""
        if by is None:
            return  # no time is left
        row.reaching, row.asked = len(tests), row.asked + len(asked)
        row.seconds = round(row.seconds + time.monotonic() - start, 1)
        row.by = by
        row.said = CAUGHT if by else EXPLAINED if mutant.name in self._known else SURVIVED
        if row.said == EXPLAINED:
            row.by = self._known[mutant.name]
        self.write()
        if by or row.asked == row.reaching:
            print(f"{row.said:10}{row.seconds:6.0f} s  {row.name:60} {row.by[:90]}", flush=True)

    def _failed(self, mutant: Planted, tests: Sequence[Reaching]) -> str | None:
        """The test that fails because of it; "" if there is none."""
        names = [test.test for test in tests]
        fixtures = {name: cost for test in tests for name, cost in test.fixtures.items()}
        limit = 25 + 5 * (sum(test.seconds for test in tests) + sum(fixtures.values()))
        while True:
            names = [name for name in names if self._sound.get(name, True)]
            failed = self._run(mutant, names, limit)
            if not failed or "::" not in failed:
                return failed
            test = failed.split(" (")[0]
            if test not in self._sound:
                self._sound[test] = self._run(None, [test], limit) == ""
            if self._sound[test]:
                return failed

    def _run(self, mutant: Planted | None, names: Sequence[str], limit: float) -> str | None:
        if not names:
            return ""
        with self._workers.copy(mutant) as folder:
            (folder / "tests.json").write_text(json.dumps(names), encoding="utf-8")
            paths = list(dict.fromkeys(name.split("::")[0] for name in names))
            told = {reach.TESTS: str(folder / "tests.json")}
            why = self._workers.pytest(folder, paths, limit, **told)
            if why:
                return None if why == LATE else why
            done = json.loads((folder / "report.json").read_text("utf-8"))
            return next(iter([*done["caught"], *done["broke"]]), "")

    def write(self) -> None:
        """The table, whole."""
        with self._lock:
            new = self._file.with_suffix(".new")
            with new.open("w", encoding="utf-8", newline="") as file:
                table = csv.DictWriter(file, [each.name for each in fields(Row)])
                table.writeheader()
                table.writerows(asdict(row) for row in self.rows.values())
            new.replace(self._file)


def run(mutants: Sequence[Planted], out: Path, many: int, minutes: float) -> int:
    """Plant them; 1 if one survives without an explanation, or was not planted in time."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="privtraj-mutants-") as folder:
        workers = Workers(Path(folder), many, minutes)
        tests = traced(workers, out / "reach.json.gz")
        print(f"{len(tests)} tests traced, {workers.left:.0f} s left", flush=True)
        judge = Judge(workers, tests, out / "outcomes.csv")
        todo = judge.resume(mutants)
        random.Random(0).shuffle(todo)  # whatever is planted in time is a sample
        for budget in ROUNDS:
            todo = [mutant for mutant in todo if _alive(judge.rows[mutant.name])]
            if workers.left > 0:
                print(f"{len(todo)} breaks, {budget:.0f} s of tests each", flush=True)
                workers.map(lambda mutant, most=budget: judge.judge(mutant, most), todo)
        judge.write()
    rows = judge.rows.values()
    if rows and {row.name for row in rows} == {each.name for each in operators.planted()}:
        store(list(rows))
    return told(list(rows))


def _replaced(breaks: str) -> str:
    """The text of the source that a break is planted in the place of."""
    return breaks.split(" becomes ")[0]


def store(rows: Sequence[Row]) -> None:
    """Keep a whole run, if everything was planted."""
    if any(row.said == OPEN for row in rows):
        return
    from privtraj.base import __version__

    with STORED.open("w", encoding="utf-8", newline="") as file:
        file.write(f"# {__version__}\n")
        table = csv.writer(file, lineterminator="\n")
        table.writerow(KEPT)
        for row in rows:
            by = row.by.split(" (")[0] if row.said == CAUGHT else ""
            table.writerow((row.name, row.said, by, row.breaks))


def stored(mutants: Sequence[Planted]) -> tuple[str, dict[str, Row]]:
    """The version of the last whole run, and what became there of the breaks that there are now;
    whatever is new, or no longer the same break, was not planted. Explanations are those of now."""
    with STORED.open(encoding="utf-8", newline="") as file:
        version = file.readline().removeprefix("# ").strip()
        before = {line["name"]: Row(**line) for line in csv.DictReader(file)}
    known, rows = operators.explanations(mutants), {}
    for mutant in mutants:
        row = before.get(mutant.name)
        if row is None or _replaced(row.breaks) != _replaced(mutant.breaks):
            row = Row(mutant.name, breaks=mutant.breaks)
        elif row.said != CAUGHT:
            row.said = EXPLAINED if mutant.name in known else SURVIVED
        rows[mutant.name] = row
    return version, rows


def _alive(row: Row) -> bool:
    return row.said == OPEN or (row.said != CAUGHT and row.asked < row.reaching)


def told(rows: Sequence[Row]) -> int:
    """Print what became of them, file by file, and who survived without an explanation."""
    by_file: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        by_file[row.name.split()[1]][row.said] += 1
    counts = sum(by_file.values(), Counter())
    columns = {"caught": CAUGHT, "explained": EXPLAINED, "unexplained": SURVIVED, OPEN: OPEN}
    print(f"{'file':28}", *(f"{name:>12}" for name in columns))
    for file, each in [*sorted(by_file.items()), ("all", counts)]:
        print(f"{file:28}", *(f"{each[said]:12}" for said in columns.values()))
    for row in rows:
        if row.said in (SURVIVED, OPEN):
            asked = f"asked {row.asked} of {row.reaching} tests"
            print(f"{row.said} {row.name}: {row.breaks} ({asked})")
    planted = len(rows) - counts[OPEN]
    harmful = planted - counts[EXPLAINED]
    for name, many in (("all", planted), ("those that could break a promise", harmful)):
        print(f"{counts[CAUGHT]} of {many} caught ({counts[CAUGHT] / max(many, 1):.1%}): {name}")
    return int(counts[SURVIVED] + counts[OPEN] > 0)
