"""Three modes: the people, the paper's two recipes and ours, and what is measured of each.

An upper and a lower half circle and the line between them, a third of the people of each time on
each mode. Modes closer than `APART` standard deviations of their people, as they are at the first
and the last time, cannot be told apart by the nearest centre: weights of modes and jumps between
them are measured at the other times.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Mask
from privtraj.data.snapshots import Snapshots
from privtraj.datasets import (
    THREE_MODES_BOUNDS,
    THREE_MODES_VARIANCE,
    three_modes,
    three_modes_centres,
    three_modes_paths,
)
from privtraj.metrics.distances import average_squared_w2
from privtraj.model.model import TrajectoryModel
from privtraj.motion.couplings import CouplingName, couple
from privtraj.motion.diffusions import Brownian
from privtraj.paper.synthesizer import PaperSynthesizer, Phase, WarmStart
from privtraj.privacy.accounting import epsilon_at
from privtraj.privacy.events import Adjacency
from privtraj.synthesizer import TrajectorySynthesizer
from reproduce.recipes import recipe
from reproduce.tables import Row

Values = NDArray[np.floating[Any]]
Modes = NDArray[np.intp]
Panel = tuple[Values, Values]  # clouds (T, n, 2) and lines (k, q, 2)

TIMES, DELTA, EPSILON = 10, 0.01, 1.0
MODES = ("upper", "line", "lower")  # in order
CLAIMED = {"annealed": 1.84, "warm start": 1.0, "warm start, dt 1": 1.0}
SIDE = THREE_MODES_BOUNDS[0][1] - THREE_MODES_BOUNDS[0][0]
_SHARED = {"delta": DELTA, "side": SIDE}  # settings of all recipes
CLUSTER_STEPS = 8
CLUSTER_NOISE = 10.67  # to two digits the least with which the warm start costs EPSILON in all
BOTH: tuple[Adjacency, Adjacency] = ("add-remove", "replace-one")
SHOWN_PATHS, SHOWN_PEOPLE, FINE = 30, 150, 20

GAP = 1 / (TIMES - 1)
MOMENTS = np.linspace(0, 1, TIMES)
_CENTRES = three_modes_centres(MOMENTS)
APART = 4.0
FRESH = 1000  # plus seed: of real people whom no model has seen
REFERENCE = 2000  # plus seed: of the real people to whom all are compared


# Modes ----------------------------------------------------------------------------------------


class Jumps(NamedTuple):
    """Share of (path, consecutive times) pairs that change mode; share of paths that ever do."""

    per_transition: float
    per_path: float


def times_apart(centres: Values, deviation: float) -> Mask:
    """(T,) whether all modes are more than APART standard deviations from each other."""
    k = centres.shape[1]
    one, other = np.triu_indices(k, 1)
    distances = np.linalg.norm(centres[:, one] - centres[:, other], axis=-1)
    return np.asarray(distances.min(axis=1) > APART * deviation)


def nearest_mode(values: Values, centres: Values) -> Modes:
    """Index (n, T) of the centre (T, k, d) nearest to each path's value (n, T, d) at each time."""
    squared = ((values[:, :, None, :] - centres[None]) ** 2).sum(axis=-1)
    return np.asarray(squared.argmin(axis=-1))


def mode_weights(modes: Modes, k: int) -> Values:
    """Share (T, k) of people on each mode, modes (n, T)."""
    return np.stack([(modes == j).mean(axis=0) for j in range(k)], axis=1)


def unevenness(weights: Values) -> Values:
    """(T,) largest distance of a weight (T, k) from 1/k."""
    return np.asarray(np.abs(weights - 1 / weights.shape[1]).max(axis=1))


def jumps(modes: Modes) -> Jumps:
    """How often paths, modes (n, T), change mode."""
    changed = modes[:, 1:] != modes[:, :-1]
    return Jumps(float(changed.mean()), float(changed.any(axis=1).mean()))


def forced_jumps(weights: Values) -> float:
    """Share of transitions that jump, at least, if paths change to a neighbouring mode only.

    weights: (T, k), modes in order. Between modes j and j + 1 the change of w_1 + .. + w_j must
    cross, whatever the coupling. Cheapest ones do jump to neighbours: two short moves cost less
    than a long one.
    """
    crossing = np.cumsum(np.diff(weights, axis=0), axis=1)[:, :-1]
    return float(np.abs(crossing).sum(axis=1).mean())


APART_AT = times_apart(_CENTRES, float(np.sqrt(THREE_MODES_VARIANCE)))


def modes_of(paths: Values) -> Modes:
    """(n, T') at the times at which modes are apart."""
    return nearest_mode(paths[:, APART_AT], _CENTRES[APART_AT])


# The models -----------------------------------------------------------------------------------


class Size(NamedTuple):
    """People per time, in a batch, released for W2, walked for jumps.

    shorter: divides the iterations of the paper.  particles: of ours, None for those it chooses.
    """

    people: int = 3000
    batch: int = 20
    released: int = 600
    walked: int = 3000
    shorter: int = 1
    particles: int | None = None

    @property
    def rho(self) -> float:
        """The rate of the batches."""
        return self.batch / self.people

    def phase(self, iterations: int, eta: float, tau: float) -> Phase:
        """A phase of the paper on such batches."""
        return Phase(max(2, iterations // self.shorter), eta, tau, self.rho)


# everybody in the batch, which is accounted in closed form; the paper's m, compiled already
QUICK = Size(300, 300, 60, 300, shorter=250, particles=50)


class Measured(NamedTuple):
    """Rows of numbers, and what panels show."""

    rows: list[Row]
    drawn: dict[str, Panel]


def annealed(size: Size, adjacency: Adjacency, seed: int | None = None) -> PaperSynthesizer:
    """The paper's three phases from particles that are uniform on [-1, 1]^2."""
    stated = ((1000, 0.005, 2.5), (500, 0.003, 1.5), (500, 0.001, 1.0))
    phases = [size.phase(*phase) for phase in stated]
    square = np.random.default_rng(0).uniform(-1, 1, (4096, 2))
    return recipe(phases, size.people, start=square, adjacency=adjacency, seed=seed, **_SHARED)


def warm_started(size: Size, adjacency: Adjacency, seed: int | None = None) -> PaperSynthesizer:
    """Private 3-means with noisy counts, then the paper's 50 iterations."""
    start = WarmStart("clusters", CLUSTER_NOISE, steps=CLUSTER_STEPS, k=len(MODES))
    phases = [size.phase(50, 0.1, 2.0)]
    return recipe(phases, size.people, start=start, adjacency=adjacency, seed=seed, **_SHARED)


def warm_started_unit_gaps(
    size: Size, adjacency: Adjacency, seed: int | None = None
) -> PaperSynthesizer:
    """The same with dt = 1 in the fit and in the pull, in case time does not run from 0 to 1.

    With the gap g, eta (clip_C(v) + pull) is eta g (clip_{C/g}(v / g) + pull / g), and v is
    proportional to dt / lambda: 1 / (lambda g) is g / (lambda g^2). Only the couplings keep tau g,
    so they are less blurred than with tau.
    """
    slower = warm_started(size, adjacency, seed)
    slower.phases = tuple(replace(phase, eta=phase.eta * GAP) for phase in slower.phases)
    slower.C /= GAP
    slower.lam *= GAP**2
    return slower


RECIPES: dict[str, Callable[..., PaperSynthesizer]] = {
    "annealed": annealed,
    "warm start": warm_started,
    "warm start, dt 1": warm_started_unit_gaps,
}


def costs(name: str, size: Size) -> Row:
    """What a recipe costs at DELTA: composed exactly, and added up part by part."""
    row: Row = {"claimed_epsilon": CLAIMED[name]}
    for adjacency in BOTH:
        paper, neighbours = RECIPES[name](size, adjacency), adjacency.replace("-", "_")
        row[f"exact_epsilon_{neighbours}"] = paper.epsilon
        row[f"added_epsilon_{neighbours}"] = paper.added_epsilon()
    return row


def settings(size: Size) -> dict[str, Any]:
    """All it takes to repeat a run, but for its seeds."""
    symbols = ("m", "C", "lam", "sigma", "side")
    recipes = {}
    for name, make in RECIPES.items():
        paper = make(size, "replace-one")
        phases = [asdict(phase) for phase in paper.phases]
        recipes[name] = {"phases": phases, **{each: getattr(paper, each) for each in symbols}}
    return {
        **size._asdict(),
        "times": TIMES,
        "delta": DELTA,
        "epsilon_ours": EPSILON,
        "bounds": [list(pair) for pair in THREE_MODES_BOUNDS],
        "recipes": recipes,
        "clusters": {"k": len(MODES), "steps": CLUSTER_STEPS, "noise": CLUSTER_NOISE},
        "times_apart": MOMENTS[APART_AT].round(3).tolist(),
        "seed_of_fresh_people": f"{FRESH} + seed",
        "seed_of_reference": f"{REFERENCE} + seed",
    }


# The measurements -----------------------------------------------------------------------------


def of_model(name: str, seed: int, size: Size) -> Measured:
    """One run: the truth, one of RECIPES, or ours under one of BOTH."""
    if name == "truth":
        return of_truth(seed, size)
    if name in RECIPES:
        return of_recipe(name, seed, size)
    return of_ours("add-remove" if name == "add-remove" else "replace-one", seed, size)


def of_truth(seed: int, size: Size) -> Measured:
    """Fresh people on their own paths, and the same people with identities dropped, chained."""
    paths = three_modes_paths(size.people, TIMES, seed=FRESH + seed)
    some = paths[: size.released]
    clouds = np.swapaxes(some, 0, 1)
    base = _marginals("truth", seed, size, some, paths)
    own = _with_jumps(base, "own", paths)
    couplings = couple(
        clouds, np.ones(clouds.shape[:2]), np.ones(TIMES - 1), Brownian(1.0), "exact"
    )
    walk = couplings.walk(size.walked, np.random.default_rng(seed))
    chained = clouds[np.arange(TIMES), walk]
    dropped = _with_jumps({**base, "model": "truth, identities dropped"}, "exact", chained)
    panel: Panel = (clouds[:, :SHOWN_PEOPLE], paths[:SHOWN_PATHS])
    return Measured([own, dropped], {"truth": panel} if seed == 0 else {})


def of_recipe(name: str, seed: int, size: Size) -> Measured:
    """One of the paper's runs; of a warm-started one also where it began."""
    seen: list[NDArray[np.float64]] = []
    began = time.perf_counter()
    paper = RECIPES[name](size, "replace-one", seed)
    model = paper.fit(_snapshots(seed, size), watch=lambda x: seen.append(x) if not seen else None)
    seconds = time.perf_counter() - began
    stages = {name: (model, model.certificate.epsilon)}
    if isinstance(paper.start, WarmStart) and name == "warm start":
        sums = (paper.start.event(), paper.start.steps)
        cost = epsilon_at([sums], DELTA, "replace-one")
        stages = {"clusters alone": (replace(model, particles=seen[0]), cost), **stages}
    rows = [
        _row(stage, at, seed, size, noisy=False) | {"exact_epsilon": epsilon}
        for stage, (at, epsilon) in stages.items()
    ]
    rows[-1] |= {**costs(name, size), "seconds": seconds}
    drawn = {stage: _recipe_panel(at, seed) for stage, (at, _) in stages.items()}
    return Measured(rows, drawn if seed == 0 else {})


def of_ours(adjacency: Adjacency, seed: int, size: Size) -> Measured:
    """Ours at (EPSILON, DELTA), everything else as it comes."""
    began = time.perf_counter()
    ours = TrajectorySynthesizer(
        EPSILON, DELTA, adjacency=adjacency, particles=size.particles, seed=seed
    )
    model = ours.fit(_snapshots(seed, size))
    seconds = time.perf_counter() - began
    row = _row(f"ours, {adjacency}", model, seed, size, noisy=True)
    for coupling in ("entropic", "exact"):
        people = model.sample(size.walked, coupling=coupling, seed=seed).values
        row = _with_jumps(row, f"{coupling}_with_noise", people)
    blurred = replace(model, diffusivity=annealed(size, adjacency).phases[-1].tau / SIDE**2)
    row = _with_jumps(row, "entropic_at_tau_1", _chain(blurred, "entropic", seed, size))
    row |= {"exact_epsilon": model.certificate.epsilon, "seconds": seconds}
    couplings: tuple[CouplingName, CouplingName] = ("entropic", "exact")
    drawn = {f"{adjacency}, {name}": _our_panel(model, name, seed) for name in couplings}
    return Measured([row], drawn if seed == 0 else {})


def _row(name: str, model: TrajectoryModel, seed: int, size: Size, *, noisy: bool) -> Row:
    """Of people with their observation noise, or of particles as they are."""
    released = model.sample(size.released, observation_noise=noisy, seed=seed).values
    many = model.sample(size.walked, observation_noise=noisy, seed=seed).values
    row = _marginals(name, seed, size, released, many)
    row = _with_jumps(row, "entropic", _chain(model, "entropic", seed, size))
    exact = _chain(model, "exact", seed, size)
    weights = mode_weights(modes_of(exact), len(MODES))
    return {**_with_jumps(row, "exact", exact), "forced_jumps": forced_jumps(weights)}


def _chain(model: TrajectoryModel, coupling: CouplingName, seed: int, size: Size) -> Values:
    """Particles (n, T, d) along the couplings, without the people's own offsets."""
    return model.sample(size.walked, coupling=coupling, observation_noise=False, seed=seed).values


def _marginals(name: str, seed: int, size: Size, released: Values, people: Values) -> Row:
    """Distance to other real people, weights of the modes, and how far people are spread."""
    _, points = three_modes(size.people, TIMES, seed=REFERENCE + seed)
    real = points.reshape(TIMES, size.people, -1)
    weights = mode_weights(modes_of(people), len(MODES))
    inside = people[:, APART_AT]
    centred = inside - inside.mean(axis=0)
    low, high = np.array(THREE_MODES_BOUNDS).T
    return {
        "model": name,
        "seed": seed,
        "delta": DELTA,
        "squared_w2": average_squared_w2(np.swapaxes(released, 0, 1), real),
        "worst_weight": float(unevenness(weights).max()),
        "spread": float(np.sqrt((centred**2).sum(axis=-1).mean())),
        "on_wall": float(((people <= low) | (people >= high)).any(axis=-1).mean()),
        **{
            f"{mode}_{moment:.3f}": float(share)
            for moment, shares in zip(MOMENTS[APART_AT], weights, strict=True)
            for mode, share in zip(MODES, shares, strict=True)
        },
    }


def _with_jumps(row: Row, name: str, paths: Values) -> Row:
    changes = jumps(modes_of(paths))
    return {**row, f"jumps_{name}": changes.per_transition, f"paths_{name}": changes.per_path}


def _snapshots(seed: int, size: Size) -> Snapshots:
    times, points = three_modes(size.people, TIMES, seed=seed)
    return Snapshots.from_arrays(times, points, bounds=THREE_MODES_BOUNDS, bins=MOMENTS)


def _recipe_panel(model: TrajectoryModel, seed: int) -> Panel:
    """Particles as they are, joined by straight lines along exact couplings, as in the paper."""
    plain: dict[str, Any] = {"observation_noise": False, "interpolation": "linear"}
    lines = model.sample(SHOWN_PATHS, coupling="exact", seed=seed, **plain).values
    return model.marginals, lines


def _our_panel(model: TrajectoryModel, coupling: CouplingName, seed: int) -> Panel:
    """People, and smooth paths along these couplings."""
    fine = np.linspace(0, 1, FINE * (TIMES - 1) + 1)
    smooth: dict[str, Any] = {"interpolation": "spline", "coupling": coupling, "seed": seed}
    people = model.sample(SHOWN_PEOPLE, **smooth).values
    return np.swapaxes(people, 0, 1), model.sample(SHOWN_PATHS, times=fine, **smooth).values
