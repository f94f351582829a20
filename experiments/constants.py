"""Which constants of the measures matter: each is halved and doubled, and people are fitted again.

    python experiments/constants.py [--only PART] [--members 0 8] [--names cells.PARTS ...]
                                    [--set cells.PARTS=VALUE ...] [--trials FILE]
                                    [--finer] [--seconds 600] [--jobs N]
                                    [--out FILE.csv] [--table FILE.csv]

Constants are what the source of `privtraj.measures` assigns to a name of a module, if it is made
of numbers; `OTHERS` says which are no statistical decision, `RULES` for which half and twice as
much mean something else: odds of a share that would be above 1, the distance from a centre.
Grids and tolerances are none only while more of them changes nothing: --finer makes each of them
twice as fine (`FINER`), and names those whose errors differ by more than `FEELS` and two standard
errors, which are choices, whatever they were taken for. --count prints how many there are of each.
A changed module is loaded anew with everything of the package, so that whatever was made of the
constant (imported names, default arguments, compiled functions) is made of the changed one.

The panel has parts, and a constant is measured in the parts that use its module:
    counts       random populations of benchmarks/regret.py of one and two numbers
    loops        thin populations of two numbers that turn or swing fast, as a pen does, at listed
                 times
    by hand      counts of one to five numbers, with 8 windows set by hand
    gradients    random populations of two to five numbers, measured by gradients
    few          those of three to six numbers, 50, 300 and 3,000 people at each of five times
    subspace     populations about a plane of 8 to 16 numbers, near it or not
    tables       random tables and hospitals of benchmarks/random_tables.py
    persistence  stationary people, 30 % of them with two records, and how they forget
All are of even seeds below 300 (tables: below 500, and hospitals), epsilon 1, delta 1e-5,
add-remove. Errors are squared W2 of 1,000 released people above that of real ones, the mean over
four times, plus 1e-4; of tables the geometric mean over answers, plus .005; of persistence the mean
error of correlations, plus .01. People and seeds of the noise are the same whatever is changed;
printed is the geometric mean of changed over unchanged errors, with its standard error. --set
changes constants of every fit, to any value; each line of the trials is a fit of its own, with
these changes together. --unseen: odd seeds from 301 (tables: 501) on, which set nothing.
"""

from __future__ import annotations

import argparse
import ast
import csv
import importlib.abc
import importlib.machinery
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from functools import lru_cache
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))

WORK, PRECISION, NAMED = "bounds work or memory", "numerical precision", "follows from others"
OTHERS = {
    "base.NOT_COUNTED": NAMED,
    "base.SLACK_RESERVE": PRECISION,
    "cells.MOST_CELLS_PER_TIME": WORK,
    "cells.PARTS": PRECISION,
    "cells.FARTHEST": PRECISION,
    "cells.LEAST_PART": PRECISION,
    "cells.TAILS": PRECISION,
    "cells._WHOLE_DRAWS": PRECISION,
    "cells._EVEN": NAMED,
    "counts.RELEASED_PARTICLES": PRECISION,
    "counts.MOST_REMEMBERED": WORK,
    "counts._SIDES": PRECISION,
    "gradients.MAX_PARTICLES": WORK,
    "gradients.LEAST_AFFORDED": WORK,
    "gradients.MOST_WORK": WORK,
    "langevin.SINKHORN_SWEEPS": PRECISION,
    "langevin.OWN_SWEEPS": PRECISION,
    "langevin.ANNEALED_TO": NAMED,
    "langevin.BIAS_LIMIT": PRECISION,
    "langevin.FIRST_BANDWIDTH": NAMED,
    "likelihood.CLIP_DRAWS": PRECISION,
    "likelihood.FAINTEST": PRECISION,
    "numbers.CURVES": PRECISION,
    "numbers.PARTICLES_PER_CURVE": PRECISION,
    "numbers.STARTS": WORK,
    "numbers.READINGS": PRECISION,
    "over_time.FOLLOWED": WORK,
    "over_time.BLOCKS_PER_SIDE": WORK,
    "over_time.BLOCKS_PER_SIDE_BEYOND": WORK,
    "over_time.BLURS": NAMED,
    "over_time.SWEEPS": PRECISION,
    "over_time.HALVINGS": PRECISION,
    "windows._APART": PRECISION,
    "over_time.CONVERGED": PRECISION,
    "over_time.ROUNDS": PRECISION,
    "over_time.ACTION": PRECISION,
    "over_time._AMPLITUDES": PRECISION,
    "over_time._TINY": PRECISION,
    "over_time._FAR": PRECISION,
    "pairs.SIZES": PRECISION,
    "pairs.LEAST_PART": PRECISION,
    "pairs.RAKINGS": PRECISION,
    "pairs.DESIGN_STEPS": PRECISION,
    "pairs.SHAPES": PRECISION,
    "persistence.MOST_EACH": PRECISION,
    "persistence._LEAST_PRECISION": PRECISION,
    "persistence._GRID": PRECISION,
    "persistence._PLACES": PRECISION,
    "persistence._THIRDS": NAMED,
    "persistence._HALVINGS": PRECISION,
    "persistence._MOST_CUT": WORK,
    "persistence._CORRELATIONS": PRECISION,
    "products.PARTICLES": WORK,
    "products.STEPS": PRECISION,
    "products.LEARNING_RATE": PRECISION,
    "products.LEAST_SHARE": PRECISION,
    "reweighting.POINTS": WORK,
    "reweighting.GROUPS": WORK,
    "reweighting.NEWTON_STEPS": PRECISION,
    "reweighting.NEWTON_TOLERANCE": PRECISION,
    "reweighting.LARGEST_STEP": PRECISION,
    "reweighting.HALVINGS": PRECISION,
    "reweighting.CURVE_CELLS": PRECISION,
    "subspace.SHELL_RATIO": PRECISION,
    "subspace.SHELLS": PRECISION,
    "subspace.LEAST_WIDTH": PRECISION,
    "tables.PEOPLE": PRECISION,
    "tables._ALWAYS": NAMED,
    "windows.CLOSE": PRECISION,
    "windows.BENDINGS": PRECISION,
    "windows.MOMENTS": PRECISION,
    "windows.MOST_LISTED": WORK,
    "windows.MOST_WINDOWS": WORK,
    "windows.MOST_LOOKED": WORK,
    "windows.MOST_READ": WORK,
    "windows.FEWEST_WINDOWS": NAMED,
    "windows.LIKELY": PRECISION,
    "windows._FREQUENCIES": PRECISION,
    "windows._HALF_WAY": NAMED,
    "windows._SPECTRA": NAMED,
    "windows._RIDGE": PRECISION,
}
"""Which constants are no statistical decision, and why."""


def _odds(share: Any, factor: float) -> Any:
    """A share, or shares, whose odds are multiplied."""
    share = np.asarray(share, float)
    odds = factor * share / (1 - share)
    return (odds / (1 + odds)).tolist()


def _from(centre: float) -> Callable[[Any, float], Any]:
    """How far values are from a centre is multiplied."""
    return lambda value, factor: (centre + (np.array(value) - centre) * factor).tolist()


def _first_two(rounds: Any, factor: float) -> Any:
    first = _odds(sum(rounds[:2]), factor)
    scale = first / sum(rounds[:2]), (1 - first) / (1 - sum(rounds[:2]))
    return tuple(x * scale[k > 1] for k, x in enumerate(rounds))


RULES: dict[str, Callable[[Any, float], Any]] = {
    "base.CLIPPED": _odds,
    "langevin.SETTLING_SHARE": _odds,
    "langevin.LIGHT": _from(1),
    "reweighting.KERNEL_KEPT": lambda kept, factor: _odds(kept**2, factor) ** 0.5,
    "tables.ROUNDS": _first_two,
}
"""Of those for which half and twice as much mean something else."""

HALVED = {
    "base.SLACK_RESERVE",
    "cells.LEAST_PART",
    "over_time.CONVERGED",
    "over_time.ACTION",
    "pairs.LEAST_PART",
    "persistence._LEAST_PRECISION",
    "products.LEAST_SHARE",
    "reweighting.NEWTON_TOLERANCE",
    "subspace.LEAST_WIDTH",
    "windows.CLOSE",
    "windows._RIDGE",
}
"""Of what is fine where it is small; of other numbers twice as many are finer."""
FINER: dict[str, Callable[[Any], Any]] = {
    "counts._SIDES": lambda _: tuple(range(2, 514, 2)),
    "pairs.SIZES": lambda _: 2.0 ** np.arange(-6, 17),
    "persistence._GRID": lambda sides: tuple(2 * side - 1 for side in sides),
    "persistence._CORRELATIONS": lambda _: np.sin(np.linspace(-np.pi / 2, np.pi / 2, 401)),
    "subspace.SHELL_RATIO": lambda ratio: ratio**0.5,
    "windows._FREQUENCIES": lambda _: np.arange(1.0, 129.0),
}
"""Of what is neither; grids of numbers above 0 get the geometric means of neighbours as well."""
FEELS = 0.05
"""Change of errors above which somebody would feel it."""


def finer(name: str, value: Any) -> Any:
    """Twice as fine."""
    if name in FINER:
        return FINER[name](value)
    if isinstance(value, np.ndarray) and (value > 0).all():
        return np.sort(np.append(value, np.sqrt(value[1:] * value[:-1])))
    return changed(name, value, 0.5 if name in HALVED else 2.0)


CURVES, EVERY = ("numbers", "over_time", "windows"), ("registry", "base")
USED = {
    "counts": ("counts", "cells", *CURVES, *EVERY),
    "loops": ("counts", "cells", "numbers", "over_time"),
    "by hand": ("counts", "cells"),
    "gradients": ("gradients", "langevin", "likelihood", "reweighting", *CURVES, *EVERY),
    "few": ("gradients", "langevin", "likelihood", "reweighting"),
    "subspace": ("subspace",),
    "tables": ("tables", "pairs", "products"),
    "persistence": ("persistence",),
}
"""Modules of each part."""
MEMBERS = {
    "counts": 64,
    "loops": 24,
    "by hand": 24,
    "gradients": 24,
    "few": 48,
    "subspace": 24,
    "tables": 32,
    "persistence": 32,
}
CHUNK = 2  # members of a job
UNSEEN = 1000  # the first member that sets nothing
RELEASED, TIMES, FRESH, CROWDS = 1000, 4, 16_000, 4
ADDED = {"tables": 0.005, "persistence": 0.01}
FIELDS = ("constant", "factor", "value", "part", "member", "error", "seconds")


# Constants ----------------------------------------------------------------------------------------


def sources() -> dict[str, Path]:
    """Modules of the measures."""
    spec = find_spec("privtraj.measures")
    assert spec is not None
    assert spec.submodule_search_locations
    folder = Path(next(iter(spec.submodule_search_locations)))
    return {file.stem: file for file in sorted(folder.glob("*.py"))}


def constants() -> dict[str, Any]:
    """Values, by module and name, of names that modules give numbers, or things made of them."""
    from importlib import import_module

    made = {}
    for stem, file in sources().items():
        module = import_module(f"privtraj.measures.{stem}")
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            for name in _assigned(node):
                value = getattr(module, name)
                parts = value.values() if isinstance(value, dict) else value
                parts = parts if isinstance(value, dict | tuple | list) else [value]
                if all(_is_number(part) for part in parts) and "__" not in name:
                    made[f"{stem}.{name}"] = value
    return made


def _assigned(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return []
    if not any(isinstance(one, ast.Constant) for one in ast.walk(node.value)):
        return []
    names = [name for one in targets for name in getattr(one, "elts", [one])]
    return [name.id for name in names if isinstance(name, ast.Name)]


def _is_number(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "if"
    return isinstance(value, int | float) and not isinstance(value, bool)


def changed(name: str, value: Any, factor: float) -> Any:
    """Half of it, or twice as much, as far as there is such a thing."""
    if name in RULES:
        return RULES[name](value, factor)
    if isinstance(value, dict):
        return {key: changed(name, one, factor) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return tuple(changed(name, one, factor) for one in value)
    if isinstance(value, int):
        return max(1, round(value * factor))
    return value * factor


class _Changed(importlib.machinery.SourceFileLoader):
    """Loads a module with some names set to other values after each assignment."""

    def __init__(self, name: str, path: str, values: dict[str, Any]) -> None:
        super().__init__(name, path)
        self.values = values

    def get_code(self, fullname: str) -> Any:
        tree = ast.parse(self.get_data(self.path), self.path)
        for k, node in reversed(list(enumerate(tree.body))):
            for name in set(_assigned(node)) & set(self.values):
                value = self.values[name]
                text = repr(value)
                if isinstance(value, np.ndarray):
                    text = f"__import__('numpy').array({value.tolist()!r})"
                tree.body[k + 1 : k + 1] = ast.parse(f"{name} = {text}").body
        return compile(tree, self.path, "exec")


class _Finder(importlib.abc.MetaPathFinder):
    values: ClassVar[dict[str, Any]] = {}  # by module and name

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        stem = fullname.removeprefix("privtraj.measures.")
        mine = {k.partition(".")[2]: v for k, v in self.values.items() if k.split(".")[0] == stem}
        if stem == fullname or not mine:
            return None
        loader = _Changed(fullname, str(sources()[stem]), mine)
        return importlib.machinery.ModuleSpec(fullname, loader, origin=loader.path)


_FINDER = _Finder()


def load(values: dict[str, Any]) -> Any:
    """The package, all of it anew, with these values."""
    import jax

    for name in list(sys.modules):
        if name.split(".")[0] == "privtraj":
            del sys.modules[name]
    jax.clear_caches()
    _Finder.values = values
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    import privtraj

    return privtraj


# The panel ----------------------------------------------------------------------------------------


class People(NamedTuple):
    """Records of a fit, and who they are drawn from.

    drawn: people (n, d) in the unit cube at times (n,).  settings: of the fit.
    """

    when: np.ndarray
    points: np.ndarray
    times: np.ndarray
    listed: bool
    drawn: Callable[[np.ndarray, np.random.Generator], np.ndarray]
    settings: dict[str, Any]


def seeds(unseen: bool, limit: int = 300) -> Iterator[int]:
    """Even ones below the limit, or odd ones from there on."""
    return iter(range(limit + 1, 3 * limit, 2) if unseen else range(0, limit, 2))


@lru_cache(maxsize=64)
def people_of(part: str, member: int) -> People:
    from regret import Population

    every = seeds(member >= UNSEEN)
    rng = np.random.default_rng([40, len(part), member])
    settings: dict[str, Any] = {}
    wanted = {"counts": (1, 2), "gradients": (2, 3, 4, 5)}.get(part)
    populations = map(Population.of, every)
    if wanted:
        populations = (one for one in populations if one.features in wanted)
    kept = list(populations)
    population = kept[member % UNSEEN % len(kept)]
    people = min(population.people, 30_000)
    if part == "loops":
        population = population._replace(
            features=2,
            shape=("thin curve", "ring", "groups")[member % 3],
            motion=("oscillation", "turning")[member // 3 % 2],
            listed=(9, 20, 33, 50)[member % 4],
        )
        people = round(600 * 10 ** rng.random())
    if part == "by hand":
        population = population._replace(features=(1, 2, 3, 3, 4, 5)[member % 6])
        settings = {"windows": 8, "measure": "counts"}
    if part == "few":
        people = 5 * (50, 300, 3000)[member // 4 % 3]
        population = population._replace(features=3 + member % 4, listed=5)
        settings = {"measure": "gradients"}
    if part == "gradients" and population.features == 2:
        settings = {"measure": "gradients"}
    if part == "subspace":
        population = population._replace(features=2)
    population = population._replace(people=people)
    when, points = population.records(0)
    drawn = population.drawn
    if part == "subspace":  # about a plane, near it or not
        d = int(rng.choice([8, 10, 12, 16]))
        axes, _ = np.linalg.qr(rng.standard_normal((d, 2)))
        wide = rng.uniform(0.005, 0.03, d) * (1 if member % 2 == 0 else 4)

        def drawn(when: np.ndarray, rng: np.random.Generator) -> np.ndarray:
            plane = (population.drawn(when, rng) - 0.5) @ axes.T
            return np.clip(0.5 + plane + wide * rng.standard_normal((len(when), d)), 0, 1)

        points = drawn(when, np.random.default_rng([41, member]))
    listed = bool(population.listed)
    return People(when, points, population.times, listed, drawn, settings)


def error_of_people(part: str, member: int) -> float:
    """Squared W2 above that of real people."""
    import privtraj as pt
    from populations import represented, squared_w2

    one = people_of(part, member)
    d = one.points.shape[1]
    snapshots = pt.Snapshots.from_arrays(
        one.when, one.points, bounds=[(0, 1)] * d, bins=one.times, time_range=(0, 1)
    )
    scored = (np.arange(TIMES) + 0.5) / TIMES
    if one.listed:
        scored = one.times[(scored * len(one.times)).astype(int)]
    model = pt.TrajectorySynthesizer(1.0, 1e-5, seed=member, **one.settings).fit(snapshots)
    people = model.sample(RELEASED, times=scored, seed=member).values
    above = []
    for released, moment in zip(people.swapaxes(0, 1), scored.tolist(), strict=True):

        def made(moment: float = moment) -> tuple[np.ndarray, ...]:
            rng = np.random.default_rng([42, member, round(1e6 * moment)])
            points, weights = represented(one.drawn(np.full(FRESH, moment), rng))
            crowds = one.drawn(np.full(CROWDS * RELEASED, moment), rng)
            crowds = crowds.reshape(CROWDS, RELEASED, -1)
            real = np.mean([squared_w2(crowd, points, weights) for crowd in crowds])
            return points, weights, real

        points, weights, real = _kept(f"{part}-{member}-{moment:.4f}", made)
        above.append(squared_w2(released, points, weights) - float(real))
    return max(float(np.mean(above)), 0.0) + 1e-4


def _kept(name: str, made: Callable[[], tuple[np.ndarray, ...]]) -> tuple[np.ndarray, ...]:
    """Made once for all processes of a run."""
    file = Path(os.environ["CONSTANTS"]) / f"{name.replace(' ', '')}.npz"
    if not file.exists():
        mine = file.with_suffix(f".{os.getpid()}.npz")
        np.savez(mine, *made())
        mine.replace(file)
    with np.load(file) as held:
        return tuple(held[key] for key in held.files)


@lru_cache(maxsize=64)
def _table(member: int) -> tuple[int, Any]:
    from random_tables import HOSPITALS, random_hospital, random_table

    some = list(seeds(member >= UNSEEN, 500))
    if member % 4 == 3:
        seed = some[member % UNSEEN // 4] + HOSPITALS
        return seed, random_hospital(seed)
    seed = some[member % UNSEEN]
    return seed, random_table(seed)


def error_of_table(member: int) -> float:
    import columns
    import privtraj as pt
    from baselines import unguarded

    seed, table = _table(member)
    others = pt.Snapshots.from_table(
        table.others, **table.declared, bins=columns.slabs_of(table.declared)
    )
    released = columns.fitted("ours", table, 0, seed)
    assert released is not None
    row = columns.answers(released, unguarded(others), others.axes)
    return float(np.exp(np.mean(np.log(np.array(list(row.values())) + ADDED["tables"]))))


def error_of_persistence(member: int) -> float:
    """Of correlations at all lags, of people who forget in two ways, or swing."""
    import privtraj as pt
    from privtraj.measures.persistence import Persistence

    rng = np.random.default_rng([43, member + 10_000 * (member >= UNSEEN)])
    count, features = int(rng.choice([1000, 2000, 5000, 10_000])), int(rng.choice([1, 2]))
    lasting, fresh, mixed = rng.dirichlet([0.7, 0.5, 1.0, 1.0])[:3]
    slow, fast, swing = 2 * rng.random(), 0.3 * rng.random(), rng.random() < 0.3

    def rho(h: np.ndarray) -> np.ndarray:
        first = np.exp(-h / slow) * (np.cos(3 * np.pi * h) if swing else 1.0)
        moving = (1 - lasting - fresh - mixed) * first + mixed * np.exp(-h / fast)
        return np.where(h == 0, 1.0, lasting + moving)

    when = rng.random((count, 2))
    together = rho(np.abs(when[:, 0] - when[:, 1]))[:, None]
    noise = rng.standard_normal((2, count, features))
    values = np.stack([noise[0], together * noise[0] + np.sqrt(1 - together**2) * noise[1]])
    values = np.clip(0.5 + 0.15 * np.concatenate([values[0], values[1]]), 0, 1)
    person, when = np.tile(np.arange(count), 2), when.T.ravel()
    some = np.append(np.ones(count, bool), rng.random(count) < 0.3)
    snapshots = pt.Snapshots.from_arrays(
        when[some],
        values[some],
        bounds=[(0, 1)] * features,
        time_range=(0, 1),
        bins=11,
        person=person[some],
        records_per_person=2,
    )
    model = pt.TrajectorySynthesizer(1.0, 1e-5, seed=member).fit(snapshots)
    lags = np.linspace(0.02, 0.98, 49)
    found = Persistence.from_dict(model.diagnostics["persistence"]).correlation(lags)
    return float(np.abs(found - rho(lags)[:, None]).mean()) + ADDED["persistence"]


# Jobs ---------------------------------------------------------------------------------------------


class Job(NamedTuple):
    constant: str  # "" for none; of a trial, all of its changes
    factor: str
    values: dict[str, Any]
    part: str
    members: tuple[int, ...]


def done(job: Job, values: dict[str, Any]) -> list[dict[str, Any]]:
    warnings.simplefilter("ignore")
    import jax

    for name, value in (
        ("jax_compilation_cache_dir", os.environ["CONSTANTS"] + "/compiled"),
        ("jax_persistent_cache_min_compile_time_secs", 0.0),
        ("jax_persistent_cache_min_entry_size_bytes", -1),
    ):
        jax.config.update(name, value)
    rows = []
    load(values | job.values)
    for member in job.members:
        start, error = time.process_time(), np.nan
        try:
            if job.part == "tables":
                error = error_of_table(member)
            elif job.part == "persistence":
                error = error_of_persistence(member)
            else:
                error = error_of_people(job.part, member)
        except Exception as reason:
            print(job[:4], member, repr(reason)[:200], file=sys.stderr, flush=True)
        took = f"{time.process_time() - start:.2f}"
        told = " ".join(" ".join(map(repr, job.values.values())).split())[:60]
        row = (job.constant, job.factor, told, job.part, member, f"{error:.7g}", took)
        rows.append(dict(zip(FIELDS, row, strict=True)))
    return rows


def set_to(words: list[str]) -> dict[str, Any]:
    """Of NAME=VALUE."""
    return {k: eval(v, {"np": np}) for k, v in (one.split("=", 1) for one in words)}


def jobs_of(
    names: list[str],
    parts: list[str],
    members: tuple[int, int],
    trials: list[str],
    twice: bool = False,
) -> Iterator[Job]:
    """Unchanged ones, which compile what others use; then the first members of all parts.

    twice: grids and tolerances, twice as fine, for the choices.
    """
    changes = [(line, "", set_to(line.split())) for line in trials]
    for name, value in constants().items():
        if OTHERS.get(name) != (PRECISION if twice else None) or (names and name not in names):
            continue
        if twice:
            changes.append((name, "finer", {name: finer(name, value)}))
        else:
            for factor in (0.5, 2.0):
                changes.append((name, f"{factor:g}", {name: changed(name, value, factor)}))
    for usual in (True, False):
        for start in range(*members, CHUNK):
            for part in parts:
                last = start // UNSEEN * UNSEEN + MEMBERS[part]
                some = tuple(range(start, min(start + CHUNK, members[1], last)))
                if some and usual:
                    yield Job("", "1", {}, part, some)
                for constant, factor, values in changes if some and not usual else ():
                    if any(name.split(".")[0] in USED[part] for name in values):
                        yield Job(constant, factor, values, part, some)


def ratios(rows: list[dict[str, str]]) -> Iterator[tuple[str, str, str, str, np.ndarray]]:
    """(constant, factor, value, part, logarithms of changed over unchanged errors)."""
    usual, other = {}, {}
    for row in rows:
        key, error = (row["part"], row["member"]), float(row["error"])
        if row["constant"]:
            name = row["constant"], row["factor"], row["value"], row["part"]
            other.setdefault(name, {})[key] = error
        else:
            usual[key] = error
    for name, errors in sorted(other.items()):
        both = [(error, usual[key]) for key, error in errors.items() if key in usual]
        if both:
            yield *name, np.log(np.divide(*np.array(both).T))


def table(rows: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Of every constant, change and part: changed over unchanged errors."""
    made = []
    for constant, factor, value, part, logs in ratios(rows):
        known = logs[np.isfinite(logs)]
        if len(known) == 0:
            continue
        error = known.std(ddof=1) / len(known) ** 0.5 if len(known) > 1 else np.nan
        made.append(
            {
                "constant": constant,
                "factor": factor,
                "value": value[:60],
                "part": part,
                "error": f"{np.exp(known.mean()):.3f}",
                "standard error": f"{error:.3f}",
                "fits": len(known),
                "differ": int((np.abs(known) > 1e-9).sum()),
                "failed": len(logs) - len(known),
            }
        )
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=USED, default=list(USED), help="parts")
    parser.add_argument("--members", nargs=2, type=int, default=(0, 64), help="FROM TO")
    parser.add_argument("--unseen", action="store_true", help="members that set nothing")
    parser.add_argument("--names", nargs="+", default=[], help="constants; all by default")
    parser.add_argument("--set", nargs="+", default=[], help="NAME=VALUE, in all fits")
    parser.add_argument("--trials", type=Path, help="a file, each line NAME=VALUE ...")
    parser.add_argument("--seconds", type=float, default=1e7, help="begin no job after these")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--finer", action="store_true", help="grids and tolerances, not choices")
    parser.add_argument("--list", action="store_true", help="print constants, and do nothing else")
    parser.add_argument("--count", action="store_true", help="how many, and do nothing else")
    parser.add_argument("--out", type=Path, help="errors of every fit, as they come")
    parser.add_argument("--table", type=Path, help="what the printed table says, as CSV")
    args = parser.parse_args()
    if args.count:
        kinds = [OTHERS.get(name, "statistical") for name in constants()]
        for kind in dict.fromkeys(["statistical", *kinds]):
            print(f"{kind:24} {kinds.count(kind)}")
        return
    if args.list:
        for name, value in constants().items():
            told = " ".join(str(value).split())[:60]
            print(f"{name:32} {OTHERS.get(name, 'statistical'):24} {told}")
        return
    start = args.members[0] + UNSEEN * args.unseen, args.members[1] + UNSEEN * args.unseen
    trials = args.trials.read_text(encoding="utf-8").splitlines() if args.trials else []
    jobs = list(jobs_of(args.names, args.only, start, trials, args.finer))
    rows: list[dict[str, str]] = []
    if args.out and args.out.exists():
        with args.out.open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines))
    end = time.monotonic() + args.seconds
    Path(os.environ.setdefault("CONSTANTS", tempfile.mkdtemp())).mkdir(exist_ok=True)
    file = args.out.open("a", encoding="utf-8", newline="") if args.out else None
    writer = csv.DictWriter(file, FIELDS, lineterminator="\n") if file else None
    if writer and not rows:
        writer.writeheader()
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        queued = [pool.submit(done, job, set_to(args.set)) for job in jobs]
        waiting = set(queued)

        def keep(one: Future[list[dict[str, Any]]]) -> None:
            found = one.result()
            rows.extend({k: str(v) for k, v in row.items()} for row in found)
            if writer and file:
                writer.writerows(found)
                file.flush()

        try:
            for one in as_completed(queued, timeout=max(end - time.monotonic(), 1.0)):
                waiting.discard(one)
                keep(one)
        except TimeoutError:
            pool.shutdown(wait=True, cancel_futures=True)
            for late in waiting:
                if not late.cancelled():
                    keep(late)
    if file:
        file.close()
    summary = table(rows)
    if args.table and summary:
        with args.table.open("w", encoding="utf-8", newline="") as lines:
            told = csv.DictWriter(lines, summary[0].keys(), lineterminator="\n")
            told.writeheader()
            told.writerows(summary)
    print("| constant | change | value | part | error | fits |\n|---|---|---|---|---|---|")
    for row in summary:
        cells = [row["constant"], row["factor"], row["value"], row["part"]]
        cells += [f"{row['error']} ({row['standard error']})", f"{row['differ']} of {row['fits']}"]
        print(f"| {' | '.join(map(str, cells))} |")
    for row in summary if args.finer else ():
        off = abs(float(row["error"]) - 1)
        if off > max(FEELS, 2 * float(row["standard error"])):
            print(f"{row['constant']} is a choice: twice as fine differs in {row['part']}")


if __name__ == "__main__":
    main()
