"""How long people wait: seconds of CPU of every command, on tables that this script makes.

    python benchmarks/waiting.py [--quick] [--only WORD] [--json FILE]

Every command runs in a new process that starts with empty caches, as on the first day; "again" is
the same command once more, which finds what the first one kept. Seconds are of CPU, of the command
and its children. A target is at most so many of them; that of 10^7 rows is a ratio, to the bare
group-by of the same granularity in the same database: of a whole fit, and of what it asks of the
database, which are all checks and its three questions. `--quick` has tables of a few hundred rows,
to see that everything runs.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import privtraj as pt

DIAGNOSES = [f"D{k:02d}" for k in range(12)]
WARDS = [f"W{k:03d}" for k in range(300)]
NUMBERS = {
    "age": (18, 95),
    "bmi": (14, 50),
    "pressure": (80, 210),
    "hba1c": (4, 14),
    "days": (0, 60),
}
LARGE = 10**7


class Row(NamedTuple):
    """One line: seconds of CPU, what it must stay below, and a peer for those that have one."""

    what: str
    seconds: float
    target: float | None = None
    peer: float | None = None

    def __str__(self) -> str:
        value = self.seconds if self.peer is None else self.seconds / self.peer
        aim = verdict = peer = ""
        if self.target is not None:
            aim, verdict = f"{self.target:g}", "yes" if value <= self.target else "NO"
        if self.peer is not None:
            peer = f"{self.peer:.2f} s, {value:.1f} times"
        return f"{self.what:66}{self.seconds:8.2f} s  {peer:>20}{aim:>6}  {verdict}"


# Tables ---------------------------------------------------------------------------------------


def hospital(rows: int, wards: bool = False, seed: int = 0) -> pa.Table:
    """One visit each: five numbers that go with diagnosis and time, sex, smoking, 12 diagnoses."""
    rng = np.random.default_rng(seed)
    share = np.linspace(0.2, 0.03, len(DIAGNOSES))
    diagnosis = rng.choice(len(DIAGNOSES), rows, p=share / share.sum())
    day, sex = rng.uniform(0, 730, rows), rng.integers(0, 2, rows)
    own = rng.standard_normal((5, rows))
    values = {
        "age": 40 + 3 * diagnosis + 12 * own[0],
        "bmi": 26 + own[1] * 4 + 2 * sex,
        "pressure": 120 + 0.4 * (40 + 12 * own[0]) + 12 * own[2],
        "hba1c": 5.5 + 0.25 * diagnosis + day / 730 + 0.6 * own[3],
        "days": np.exp(1.2 + 0.05 * diagnosis + 0.7 * own[4]),
    }
    columns = {name: np.clip(x, *NUMBERS[name]) for name, x in values.items()}
    smokes = np.where(rng.random(rows) < 0.2 + 0.15 * sex, "yes", "no")
    columns |= {"sex": np.array(["F", "M"])[sex], "smoker": smokes}
    columns["diagnosis"] = np.array(DIAGNOSES)[diagnosis]
    if wards:
        columns["ward"] = np.array(WARDS)[(len(WARDS) * rng.random(rows) ** 2).astype(int)]
    return pa.table({"id": rng.permutation(rows), "day": day, **columns})


def hospital_words(wards: bool = False) -> list[str]:
    words = [w for name, box in NUMBERS.items() for w in ("--feature", name, *map(str, box))]
    levels = {"sex": "F,M", "smoker": "no,yes", "diagnosis": ",".join(DIAGNOSES)}
    if wards:
        levels["ward"] = ",".join(WARDS)
    for name, values in levels.items():
        words += ["--column", name, "category", f"values={values}"]
    return [*words, "--time", "day", "--person", "id", "--time-range", "0", "730"]


def clouds(rows: int, features: int, seed: int = 0) -> pa.Table:
    """A crowd of two groups that drift, in so many numbers from 0 to 1."""
    rng = np.random.default_rng(seed)
    t = rng.uniform(0, 10, rows)
    group = rng.integers(0, 2, rows)[:, None]
    x = 0.3 + 0.3 * group + 0.02 * t[:, None] + 0.07 * rng.standard_normal((rows, features))
    x = np.clip(x, 0, 1)
    return pa.table({"id": np.arange(rows), "t": t} | {f"x{k}": x[:, k] for k in range(features)})


def clouds_words(features: int) -> list[str]:
    words = [w for k in range(features) for w in ("--feature", f"x{k}", "0", "1")]
    return [*words, "--time", "t", "--person", "id", "--time-range", "0", "10"]


# Commands -------------------------------------------------------------------------------------


def run(words: list[str], place: Path) -> float:
    """Seconds of CPU of a new process whose caches are in a folder."""
    log = place / "log.txt"
    environment = {**os.environ, "XDG_CACHE_HOME": str(place / "cache")}
    for name in ("JAX_COMPILATION_CACHE_DIR", "PYTHONDONTWRITEBYTECODE"):
        environment.pop(name, None)
    with log.open("w") as out:
        process = subprocess.Popen(words, stdout=out, stderr=out, env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{words[2:5]} failed: {log.read_text()[-2000:]}")
    return usage.ru_utime + usage.ru_stime


def privtraj(place: Path, *words: object) -> float:
    return run([sys.executable, "-m", "privtraj", *map(str, words), "--force"], place)


def fit(place: Path, table: pa.Table | Path, words: list[str], name: str = "m") -> float:
    data = place / f"{name}.parquet" if isinstance(table, pa.Table) else table
    if isinstance(table, pa.Table):
        pq.write_table(table, data)
    budget = ["--epsilon", 1, "--delta", 1e-6, "--out", place / f"{name}.privtraj"]
    return privtraj(place, "fit", data, *words, *budget)


def small(place: Path, quick: bool) -> Iterator[Row]:
    """Two numbers: what a first try costs."""
    table, words = clouds(600 if quick else 6000, 2), clouds_words(2)
    yield Row("fit, two numbers, 6,000 rows", fit(place, table, words), 1.5)
    yield Row("  again", fit(place, table, words), 1.5)
    model = place / "m.privtraj"
    yield Row("  sample 1,000 paths", privtraj(place, "sample", model, "--out", place / "p.csv"), 1)
    yield Row("  report", privtraj(place, "report", model, "-o", place / "r.html"), 1)
    yield Row("  report, again", privtraj(place, "report", model, "-o", place / "r.html"), 1)


def clinic(place: Path, quick: bool) -> Iterator[Row]:
    """A hospital's table, all kinds of columns."""
    rows = 400 if quick else 8000
    model, data = place / "m.privtraj", place / "m.parquet"
    for wards in (False, True):
        what = f"hospital, {rows:,} rows, {8 + wards} columns{', one of 300 values' * wards}"
        yield Row(f"{what}: fit", fit(place, hospital(rows, wards), hospital_words(wards)), 10)
        report = privtraj(place, "report", model, "-o", place / "r.html")
        yield Row(f"{what}: report", report, 10)
        evaluated = privtraj(place, "evaluate", model, data, "--out", place / "e.json")
        yield Row(f"{what}: evaluate", evaluated, 20)


def more(place: Path, quick: bool) -> Iterator[Row]:
    """Many rows, many numbers."""
    for rows, target in ((10**5, 15), (10**6, 45)):
        table = hospital(1000 if quick else rows)
        yield Row(
            f"fit, {rows:,} rows of 8 mixed columns", fit(place, table, hospital_words()), target
        )
    table = clouds(300 if quick else 5000, 12)
    yield Row("fit, 5,000 rows of 12 numbers", fit(place, table, clouds_words(12)), 60)
    report = privtraj(place, "report", place / "m.privtraj", "-o", place / "r.html")
    yield Row("  report", report, 60)


def banks(place: Path, quick: bool) -> Iterator[Row]:
    """Commuters between two banks with bridges (`domains.py`)."""
    model, python = place / "m.privtraj", [sys.executable, "-c"]
    run(
        [*python, FIT_BANKS, str(Path(__file__).parent), str(model), "600" if quick else "6000"],
        place,
    )
    paths = run([*python, FIRST_PATHS, str(model)], place)
    yield Row("two banks with bridges: first 300 paths at 97 times", paths, 1)
    yield Row("  report", privtraj(place, "report", model, "-o", place / "r.html"), 10)


FIT_BANKS = """
import sys
import numpy as np
sys.path.append(sys.argv[1])
import domains
river, rng, n = domains.river(), np.random.default_rng(0), int(sys.argv[3])
people = domains.Commuters(river, n, rng)
domains.fit(river, people, rng.random(n), 0).save(sys.argv[2], not_private=True)
"""

FIRST_PATHS = """
import sys
import numpy as np
import privtraj as pt
model = pt.load(sys.argv[1])
model.sample(300, np.linspace(*model.knots[[0, -1]], 97), seed=0)
"""


def scale(place: Path, quick: bool) -> Iterator[Row]:
    """10^7 rows from Parquet files, against one group-by of the same cells by DuckDB alone."""
    rows, folder = 10**5 if quick else LARGE, place / "people"
    folder.mkdir()
    for part in range(10):
        piece = clouds(rows // 10, 2, seed=part)
        ids = pa.array(np.arange(rows // 10) + part * (rows // 10))
        pq.write_table(piece.set_column(0, "id", ids), folder / f"{part}.parquet")
    ours = fit(place, folder, clouds_words(2))
    settings = pt.load(place / "m.privtraj").settings
    sides = [settings["windows"], settings["cells_per_side"]]
    counted = run([sys.executable, "-c", COUNTED, str(folder), *map(str, sides)], place)
    sizes = [settings["windows"] / 10, *[settings["cells_per_side"]] * 2]
    bare = run([sys.executable, "-c", BARE, str(folder / "*.parquet"), *map(str, sizes)], place)
    yield Row("10^7 rows of two numbers from Parquet: fit", ours, 3, bare)
    yield Row("  checked and counted alone", counted, 3, bare)


COUNTED = """
import sys
import numpy as np
import privtraj as pt
from privtraj.base.space import Slabs
windows, cells = map(int, sys.argv[2:])
box = {'x0': (0, 1), 'x1': (0, 1)}
table = {'time': 't', 'bounds': box, 'time_range': (0, 10), 'person': 'id'}
rows = pt.Snapshots.from_table(sys.argv[1], **table)._rows
for count, side in ((32, 4), (windows, 1), (windows, cells)):
    rows.cell_counts(Slabs.between(np.linspace(0, 10, count + 1)[1:-1]), (side, side))
"""

BARE = """
import sys, duckdb
files, *sizes = sys.argv[1:]
columns = [f'floor({name} * {size})' for name, size in zip(('t', 'x0', 'x1'), sizes)]
duckdb.sql(f"SELECT {', '.join(columns)}, count(*) FROM '{files}' GROUP BY ALL").fetchnumpy()
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--only", help="small, clinic, more, banks or scale")
    parser.add_argument("--json", help="file for the numbers")
    args = parser.parse_args()
    print(f"{'seconds of CPU':66}{'ours':>10}  {'peer':>20}{'target':>6}  reached")
    rows = []
    compileall.compile_dir(Path(pt.__file__).parent, quiet=1)  # as an installer does
    for part in (small, clinic, more, banks, scale):
        if args.only in (None, part.__name__):
            with tempfile.TemporaryDirectory() as folder:
                for row in part(Path(folder), args.quick):
                    rows.append(row)
                    print(row, flush=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    print(f"peak memory of a command {peak:.2f} GiB")
    if args.json:
        Path(args.json).write_text(json.dumps([row._asdict() for row in rows], indent=1))


if __name__ == "__main__":
    main()
