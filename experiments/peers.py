"""What others make of the same people without privacy, beside ours with epsilon 1.

    python experiments/peers.py [--quick] [--seeds 3] [--gwot CHECKOUT] [--mfl CHECKOUT] [--flow]
                                [--cells FILE] [--json FILE]

The same simulated people as in coupling.py, 1,000 at each of ten times, everything in shares of the
box; mean (standard deviation) over seeds.
1. Paths: path-space W2 of 600 paths to 1,200 true ones, over the floor (600 other true paths).
2. A time that is left out: W1 and W2 of its prediction to its people. With --cells also of single
   cells, a file with X (n, d), t_index (n,) and times (T,).

Peers, none of them private, are run and not copied; each takes the path of its own checkout:
- exact transport: optimal transport from time to time (POT), straight in between;
- mean-field Langevin (--mfl): github.com/zsteve/mfl, Chizat et al. 2022;
- gWOT (--gwot): github.com/zsteve/gWOT, Lavenant et al. 2021;
- flow matching (--flow): torchcfm, Tong et al. 2024, a neural velocity along minibatch transport.
They need torch, and gWOT what its requirements.txt lists. Settings are those of their examples but
for what is said below: less of everything, to run on two cores.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import sys
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from common import RELEASED, in_parallel, spread, write_json
from coupling import FIRST_SEED, column, held_out_rows, names, prediction_scores
from privtraj.base.errors import aligned
from reproduce.tables import Row
from seen import BUDGET, seen_clouds, true_paths

OURS = "privtraj, epsilon 1"
EXACT, LANGEVIN, GWOT, FLOW = "exact transport", "mean-field Langevin", "gWOT", "flow matching"
DATA = ("three modes", "ornstein-uhlenbeck", "bifurcation", "rotation")
CELLS = "single cells"
CELL_BOX = (-1.6, 1.6)  # of every coordinate

DIFFUSIVITY = 0.16 / 9
"""Given to the entropic peers: that of the simulated diffusions, whose people know it."""
LANGEVIN_SETTINGS = {"M": 100, "lamda": 0.025, "eta": 0.1, "n_iter": 500, "sinkhorn_iters": 50}
"""Of fig1_batch/main.py, but for a fifth of its steps, from people instead of a point, and of the
iterations of each, which start from those before."""
GWOT_SETTINGS = {"lamda": 0.0025, "eps_df": 0.01, "steps": 25, "max_iter": 50}
"""Likewise; eps_df is in squared units of that box."""
THEIR_BOX = 3.0
"""Its width: their people, like ours, start near 0 and part to -1.5 and 1.5."""
FEW = 100
"""People at each time for the entropic peers, twice what their example has: they hold dense arrays
between all people of all times, or between these and all particles."""
FLOW_SETTINGS = {"batch": 64, "steps": 2000, "rate": 2e-3, "sigma": 0.1, "width": 64}
"""Batches of all pairs of times together, as in its single-cell example."""

Sample = Callable[[int, np.ndarray, np.random.Generator], np.ndarray]
"""n people at times (q,): (n, q, d)."""
Fit = Callable[[Sequence[np.ndarray], np.ndarray, int], Sample]
"""Of people (n_i, d) at each time (T,), with a seed."""


class Coupled(NamedTuple):
    """Clouds (n_i, d) at times (T,), couplings (n_i, n_(i+1)) between them, and what paths do in
    between: straight, plus a Brownian bridge of variance `noise` (T - 1,) over the whole gap."""

    clouds: Sequence[np.ndarray]
    times: np.ndarray
    plans: Sequence[np.ndarray]
    noise: np.ndarray

    def __call__(self, n: int, at: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        knots = self._walk(n, rng)
        left = np.clip(np.searchsorted(self.times, at, "right") - 1, 0, len(self.plans) - 1)
        share = (at - self.times[left]) / np.diff(self.times)[left]
        values = np.empty((n, len(at), knots.shape[2]))
        for q, (i, s) in enumerate(zip(left, share, strict=True)):
            bridge = np.sqrt(self.noise[i] * s * (1 - s)) * rng.standard_normal(knots[:, 0].shape)
            values[:, q] = (1 - s) * knots[:, i] + s * knots[:, i + 1] + bridge
        return values

    def _walk(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Places (n, T, d) of a Markov chain through the couplings."""
        from privtraj.base.arrays import systematic

        here = rng.permutation(systematic(self.plans[0].sum(axis=1), n, rng))
        places = [self.clouds[0][here]]
        for plan, cloud in zip(self.plans, self.clouds[1:], strict=True):
            reached = np.cumsum(plan, axis=1)[here]
            drawn = rng.random((n, 1)) * reached[:, -1:]
            here = np.minimum((reached < drawn).sum(axis=1), plan.shape[1] - 1)
            places.append(cloud[here])
        return np.stack(places, axis=1)


def exact_transport(clouds: Sequence[np.ndarray], times: np.ndarray, seed: int) -> Sample:
    """Optimal transport from each time to the next."""
    import ot

    plans = [ot.emd([], [], ot.dist(x, y), numItermax=5_000_000) for x, y in pairwise(clouds)]
    return Coupled(clouds, times, plans, np.zeros(len(plans)))


class MeanFieldLangevin(NamedTuple):
    """Their optimisation of particles, through their own couplings."""

    checkout: str
    diffusivity: float = DIFFUSIVITY
    sigma: float = 0.15  # of the fit to people; their .5 merges branches, .05 does not converge

    def __call__(self, clouds: Sequence[np.ndarray], times: np.ndarray, seed: int) -> Sample:
        import torch

        theirs = _module("mfl_models", Path(self.checkout) / "models.py")
        torch.set_default_dtype(torch.float64)
        torch.manual_seed(seed)
        rng, of = np.random.default_rng(seed), LANGEVIN_SETTINGS
        gaps, m = np.diff(times), int(of["M"])
        dt = float(gaps.mean())
        # A gap that is longer than the others is a wider scale: their time step is one for all.
        scales = torch.tensor(np.sqrt(gaps / dt))
        tau = self.diffusivity * THEIR_BOX**2
        some = _some(clouds, rng)
        start = np.stack([cloud[rng.permutation(m) % len(cloud)] for cloud in some])
        seen = torch.tensor(np.concatenate(some) * THEIR_BOX)
        model = theirs.TrajLoss(
            torch.tensor(start * THEIR_BOX),
            seen,
            torch.tensor(np.repeat(np.arange(len(some)), [len(cloud) for cloud in some])),
            dt=dt,
            tau=tau,
            sigma=None,
            M=m,
            lamda_reg=of["lamda"],
            lamda_cst=0,
            sigma_cst=float("inf"),
            branching_rate_fn=None,
            sinkhorn_iters=of["sinkhorn_iters"],
            device=torch.device("cpu"),
            warm_start=True,
            scale_factors=scales,
        )
        with contextlib.redirect_stdout(io.StringIO()):
            theirs.optimize(
                model,
                n_iter=of["n_iter"],
                eta_final=of["eta"],
                tau_final=tau,
                sigma_final=self.sigma,
                temp_init=1.0,
                temp_ratio=1.0,
                N=m,
                dim=seen.shape[1],
                tloss=model,
            )
        with torch.no_grad():
            model()
            particles = list(model.x.numpy() / THEIR_BOX)
            plans = [loss.coupling().numpy() for loss in model.loss_reg.ot_losses]
        return Coupled(particles, times, plans, self.diffusivity * gaps)


class GlobalWaddington(NamedTuple):
    """Their weights of all people at every time, through their own couplings."""

    checkout: str
    diffusivity: float = DIFFUSIVITY

    def __call__(self, clouds: Sequence[np.ndarray], times: np.ndarray, seed: int) -> Sample:
        import torch

        if self.checkout not in sys.path:
            sys.path.insert(0, self.checkout)
        with contextlib.redirect_stdout(io.StringIO()):
            from gwot import models, ts

        torch.set_default_dtype(torch.float64)
        torch.manual_seed(seed)
        rng, of = np.random.default_rng(seed), GWOT_SETTINGS
        some = _some(clouds, rng)
        support = np.concatenate(some)
        series = ts.TimeSeries(
            x=support * THEIR_BOX,
            dt=np.diff(times),
            t_idx=np.repeat(np.arange(len(some)), [len(cloud) for cloud in some]),
            D=self.diffusivity * THEIR_BOX**2,
        )
        model = models.OTModel(
            series,
            lamda_reg=of["lamda"],
            eps_df=of["eps_df"] * torch.ones(len(some)),
            growth_constraint="exact",
            pi_0="uniform",
            use_keops=False,
            device=torch.device("cpu"),
        )
        with contextlib.redirect_stdout(io.StringIO()):
            model.solve_lbfgs(
                steps=of["steps"],
                max_iter=of["max_iter"],
                lr=1,
                history_size=50,
                line_search_fn="strong_wolfe",
                factor=2,
                tol=1e-5,
                retry_max=0,
            )
        with torch.no_grad():
            plans = [model.get_coupling_reg(i).numpy() for i in range(len(some) - 1)]
        return Coupled([support] * len(some), times, plans, self.diffusivity * np.diff(times))


def flow_matching(clouds: Sequence[np.ndarray], times: np.ndarray, seed: int) -> Sample:
    """A network for the velocity, trained along minibatch optimal transport between neighbours."""
    import torch
    from torchcfm.conditional_flow_matching import ExactOptimalTransportConditionalFlowMatcher
    from torchcfm.models.models import MLP

    torch.set_default_dtype(torch.float32)
    torch.manual_seed(seed)
    np.random.seed(seed)  # POT's, of which the matcher draws its pairs
    rng, of, d = np.random.default_rng(seed), FLOW_SETTINGS, clouds[0].shape[1]
    matcher = ExactOptimalTransportConditionalFlowMatcher(sigma=of["sigma"])
    network = MLP(dim=d, time_varying=True, w=of["width"])
    optimizer = torch.optim.AdamW(network.parameters(), of["rate"])
    people = [torch.tensor((cloud - 0.5) * THEIR_BOX, dtype=torch.float32) for cloud in clouds]
    gaps = np.diff(times)

    def batch(i: int) -> tuple[Any, Any]:
        """Places with their times, and velocities, between times i and i + 1."""
        some = (x[rng.integers(len(x), size=of["batch"])] for x in people[i : i + 2])
        t, x, u = matcher.sample_location_and_conditional_flow(*some)
        when = (times[i] + t * gaps[i]).float()
        return torch.cat([x, when[:, None]], dim=1), u / float(gaps[i])

    for _ in range(int(of["steps"])):
        places, wanted = map(torch.cat, zip(*map(batch, range(len(gaps))), strict=True))
        loss = ((network(places) - wanted) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def velocity(x: np.ndarray, t: float) -> np.ndarray:
        with torch.no_grad():
            inputs = np.column_stack([x, np.full(len(x), t)])
            return network(torch.tensor(inputs, dtype=torch.float32)).numpy().astype(float)

    def sample(n: int, at: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        from privtraj.motion.reference import Drift

        field, now = Drift(velocity), float(times[0])
        x = (clouds[0][rng.integers(len(clouds[0]), size=n)] - 0.5) * THEIR_BOX
        places = []
        for t in map(float, at):
            x, now = field.ahead(x, now, t - now), t
            places.append(x / THEIR_BOX + 0.5)
        return np.stack(places, axis=1)

    return sample


def ours(clouds: Sequence[np.ndarray], times: np.ndarray, seed: int) -> Sample:
    """The private model, as set by default."""
    import privtraj as pt

    when = np.repeat(times, [len(cloud) for cloud in clouds])
    points = np.concatenate(clouds)
    data = pt.Snapshots.from_arrays(
        when, points, bounds=[(0, 1)] * points.shape[1], bins=times, time_range=(0, 1)
    )
    model = pt.TrajectorySynthesizer(*BUDGET, seed=seed).fit(data)
    return lambda n, at, rng: model.sample(n, at, seed=int(rng.integers(2**32))).values


def _some(clouds: Sequence[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    return [cloud[rng.permutation(len(cloud))[:FEW]] for cloud in clouds]


def _module(name: str, path: Path) -> Any:
    """A file of a checkout as a module: it is called `models`, as others are."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Tables ---------------------------------------------------------------------------------------


class Sizes(NamedTuple):
    """How much of everything."""

    data: tuple[str, ...] = DATA
    people: int = 1000
    times: int = 10
    released: int = RELEASED
    truth: int = 1200
    left_out: int = 5


QUICK = Sizes(("bifurcation",), people=100, times=5, released=100, truth=200, left_out=2)


def paths(name: str, fit: Fit, data: str, seed: int, sizes: Sizes) -> list[Row]:
    """Path-space W2 of a peer over the floor."""
    from privtraj.metrics import path_wasserstein2

    clouds = seen_clouds(data, sizes.people, sizes.times, seed)
    times, rng = np.linspace(0, 1, sizes.times), np.random.default_rng(seed)
    truth = true_paths(data, sizes.truth, sizes.times, seed + 30_000)
    floor = path_wasserstein2(true_paths(data, sizes.released, sizes.times, seed + 40_000), truth)
    began = time.perf_counter()
    drawn = fit(list(clouds), times, seed)(sizes.released, times, rng)
    seconds = time.perf_counter() - began
    w2 = path_wasserstein2(drawn, truth)
    row = {"data": data, "row": name, "seed": seed, "w2": w2, "over_floor": w2 / floor}
    return [row | {"seconds": seconds}]


def held_out(
    name: str, fit: Fit, data: str, clouds: list[np.ndarray], seed: int, i: int
) -> list[Row]:
    """W1 and W2 of what a peer predicts for the people of time i, which it has not seen."""
    times, rng = np.linspace(0, 1, len(clouds)), np.random.default_rng(seed)
    sample = fit(clouds[:i] + clouds[i + 1 :], np.delete(times, i), seed)
    guess = sample(len(clouds[i]), times[[i]], rng)[:, 0]
    scores = prediction_scores({name: guess}, clouds, times, i)
    return [row for row in held_out_rows(data, seed, float(times[i]), scores) if row["row"] == name]


def cells(path: str) -> list[np.ndarray]:
    """People (n_i, d) of every time in shares of the box, the times taken for even."""
    with np.load(path) as file:
        points, when = file["X"].astype(np.float64), file["t_index"]
    low, high = CELL_BOX
    return [(points[when == i] - low) / (high - low) for i in range(int(when.max()) + 1)]


def table(rows: list[Row], keys: Sequence[str], digits: Sequence[int]) -> str:
    """Every peer on every data set."""
    lines = [("", "", *(key.replace("_", " ") for key in keys))]
    for data in names(rows, "data"):
        for row in names(rows, "row", data):
            values = (column(rows, key, data, row) for key in keys)
            lines.append((data, row, *map(spread, values, digits)))
    return "\n".join(aligned(lines, right=range(2, len(lines[0]))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smallest run, one seed")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--mfl", help="checkout of github.com/zsteve/mfl")
    parser.add_argument("--gwot", help="checkout of github.com/zsteve/gWOT")
    parser.add_argument("--flow", action="store_true", help="flow matching, by torchcfm")
    parser.add_argument("--cells", help=".npz of single cells")
    parser.add_argument("--json", help="file for every number")
    args = parser.parse_args()

    began = time.perf_counter()
    sizes, seeds = (QUICK, 1) if args.quick else (Sizes(), args.seeds)
    peers: dict[str, Fit] = {OURS: ours, EXACT: exact_transport}
    if args.mfl:
        peers[LANGEVIN] = MeanFieldLangevin(args.mfl)
    if args.gwot:
        peers[GWOT] = GlobalWaddington(args.gwot)
    if args.flow:
        peers[FLOW] = flow_matching
    tasks = [
        (name, fit, data, FIRST_SEED + k)
        for data in sizes.data
        for name, fit in peers.items()
        for k in range(seeds)
    ]

    def rows(function: Callable[..., list[Row]], tasks: list[tuple[Any, ...]]) -> list[Row]:
        # a quick run is done before other processes have started
        done = [function(*t) for t in tasks] if args.quick else in_parallel(function, tasks)
        return [row for part in done for row in part]

    followed = rows(paths, [(*task, sizes) for task in tasks])
    print(
        f"1. Paths over {sizes.times} times, {sizes.people} people at each\n"
        f"{table(followed, ('w2', 'over_floor', 'seconds'), (4, 2, 0))}\n",
        flush=True,
    )
    seen = {
        (data, FIRST_SEED + k): list(seen_clouds(data, sizes.people, sizes.times, FIRST_SEED + k))
        for data in sizes.data
        for k in range(seeds)
    }
    missing = [
        (name, fit, data, seen[data, seed], seed, sizes.left_out) for name, fit, data, seed in tasks
    ]
    if args.cells:
        real = cells(args.cells)
        missing += [
            (name, fit, CELLS, real, FIRST_SEED + k, i)
            for name, fit in peers.items()
            for k in range(seeds)
            for i in range(1, len(real) - 1)
        ]
    left_out = rows(held_out, missing)
    print(
        f"2. A time left out\n{table(left_out, ('w1', 'w2', 'over_midpoint'), (4, 4, 2))}\n"
        f"seeds: {seeds}, {time.perf_counter() - began:.0f} s"
    )
    write_json(args.json, {"paths": followed, "held out": left_out})


if __name__ == "__main__":
    main()
