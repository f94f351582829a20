"""The pictures of docs/method.md, from real fits of simulated people.

    python experiments/method_pictures.py [--out docs/images]

The pictures show raw records of people who do not exist, beside what was released of them.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import privtraj as pt
from privtraj.plot import BLUE, GREY, INK, VERMILION, decorate
from privtraj.privacy.guard import CellCounts, Guard, Release
from privtraj.privacy.sums import KernelSums

TIMES = np.linspace(0, 1, 10)
BOUNDS = [(-1.5, 1.5)] * 2
SHOWN = 5  # the time at which one cloud is shown
SEED = 3
WIDTH = 8  # inches


class Watching(Guard):
    """A guard that keeps what was asked of it and what it answered."""

    counted: ClassVar[list[np.ndarray]] = []
    moved: ClassVar[list[np.ndarray]] = []

    def ask(self, release: Release) -> Any:
        answer = super().ask(release)
        if isinstance(release.question, CellCounts):
            self.counted.append(answer)
        elif isinstance(release.question, KernelSums):
            self.moved.append(np.asarray(release.question.parameters.centres))
        return answer


class Watched(pt.TrajectorySynthesizer):
    """A fit that keeps what left the guard."""

    guard_class = Watching

    def fit(self, *args: Any, **options: Any) -> pt.TrajectoryModel:
        Watching.counted.clear()
        Watching.moved.clear()
        model = super().fit(*args, **options)
        self.counted, self.moved = list(Watching.counted), list(Watching.moved)
        return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    out = parser.parse_args().out
    pictures = {
        "in-and-out": in_and_out,
        "counts": counts,
        "gradients": gradients,
        "time": time,
        "paths": paths,
        "epsilon": budgets,
    }
    for name, draw in pictures.items():
        draw().savefig(out / f"method-{name}.png", dpi=150)


def snapshots(people: int) -> tuple[pt.Snapshots, np.ndarray, np.ndarray]:
    """Three modes, with times (n,) and points (n, 2)."""
    times, points = pt.datasets.three_modes(people, TIMES, SEED)
    return pt.Snapshots.from_arrays(times, points, bounds=BOUNDS, bins=TIMES), times, points


def in_and_out() -> Figure:
    """One record per person, private marginals, paths."""
    snaps, times, points = snapshots(300)
    model = pt.TrajectorySynthesizer(2.0, 1e-5, seed=SEED).fit(snaps)
    figure, axes = panels(3)
    title(axes[0], "in: one record per person")
    axes[0].scatter(*points.T, c=times, s=3, cmap="viridis", lw=0)
    title(axes[1], "released: particles at ten times")
    for t, cloud in zip(model.times, model.marginals, strict=True):
        axes[1].scatter(
            *cloud.T, c=np.full(len(cloud), t), s=5, cmap="viridis", vmin=0, vmax=1, lw=0
        )
    title(axes[2], "drawn from it: paths")
    drawn = model.sample(60, times=np.linspace(0, 1, 100), seed=SEED).values
    axes[2].plot(drawn[:, :, 0].T, drawn[:, :, 1].T, color=GREY, lw=0.6, alpha=0.6)
    axes[2].scatter(*drawn[:, 0].T, color=BLUE, s=12, zorder=3, lw=0)
    axes[2].scatter(*drawn[:, -1].T, color=VERMILION, s=12, zorder=3, lw=0)
    return figure


def counts() -> Figure:
    """People, noisy counts, believed cells, released people, at one time."""
    snaps, times, points = snapshots(1000)
    fit = Watched(1.0, 1e-5, measure="counts", windows="bins", seed=SEED)
    model = fit.fit(snaps)
    noisy = fit.counted[-1][SHOWN]
    side = round(len(noisy) ** 0.5)
    figure, axes = panels(4)
    title(axes[0], "1. people")
    axes[0].scatter(*points[times == TIMES[SHOWN]].T, color=INK, s=3, lw=0)
    title(axes[1], f"2. noisy counts, {side} x {side}")
    box = (*BOUNDS[0], *BOUNDS[1])
    largest = np.abs(noisy).max()
    grid = noisy.reshape(side, side).T
    axes[1].imshow(grid, origin="lower", extent=box, cmap="RdBu_r", vmin=-largest, vmax=largest)
    title(axes[2], "3. believed cells")
    at, weights = model.particles[SHOWN], model.weights[SHOWN]
    low, high = np.array(BOUNDS).T
    axes[2].scatter(*(low + at * (high - low)).T, s=4e3 * weights, color=BLUE, alpha=0.5, lw=0)
    title(axes[3], "4. synthetic people")
    released = model.sample(1000, times=[TIMES[SHOWN]], seed=SEED).values[:, 0]
    axes[3].scatter(*released.T, color=VERMILION, s=3, lw=0)
    return figure


def gradients() -> Figure:
    """Particles on their way to the people, at one time."""
    snaps, times, points = snapshots(2000)
    fit = Watched(1.0, 1e-5, measure="gradients", windows="bins", seed=SEED)
    fit.fit(snaps)
    low, high = np.array(BOUNDS).T
    steps = np.rint(np.array([0, 0.2, 0.45, 1]) * (len(fit.moved) - 1)).astype(int)
    figure, axes = panels(4)
    for ax, step in zip(axes, steps, strict=True):
        title(ax, f"step {step + 1} of {len(fit.moved)}")
        ax.scatter(*points[times == TIMES[SHOWN]].T, color="#c9d0d6", s=3, lw=0)
        cloud = low + fit.moved[step][SHOWN] * (high - low)
        ax.scatter(*cloud.T, color=VERMILION, s=9, lw=0)
    return figure


def time() -> Figure:
    """Slabs of time, short where children grow fast, and curves that undo their blur."""
    age = np.random.default_rng(SEED).uniform(0, 20, 30_000)
    height = pt.datasets.growth_at(age, SEED)[:, 0]
    snaps = pt.Snapshots.from_arrays(
        age, height, bounds={"height": (40, 210)}, features=["height"], time_range=(0, 20)
    )
    model = pt.TrajectorySynthesizer(1.0, 1e-5, seed=SEED).fit(snaps)
    edges = np.setdiff1d(model.knots, model.times)
    figure = Figure(figsize=(WIDTH, 3.2), layout="constrained", facecolor="white")
    axes = figure.subplots(1, 3, sharey=True)
    title(axes[0], "records at any time, in slabs")
    axes[0].scatter(age[:3000], height[:3000], color=INK, s=1.5, lw=0)
    title(axes[1], "each slab by itself: a blur")
    middle, slab = [10, 50, 90], np.searchsorted(edges, age)
    ends = np.concatenate([[0], edges, [20]])
    for k in range(len(edges) + 1):
        for value in np.percentile(height[slab == k], middle):
            axes[1].plot(ends[k : k + 2], [value, value], color=BLUE, lw=1.5)
    title(axes[2], "curves through the slabs")
    fine = np.linspace(0, 20, 161)
    drawn = model.sample(2000, times=fine, interpolation="linear", seed=SEED).values[:, :, 0]
    axes[2].plot(fine, np.percentile(drawn, middle, axis=0).T, color=VERMILION, lw=1.5)
    true = [pt.datasets.growth_at(np.full(3000, t), SEED + 1)[:, 0] for t in fine[::8]]
    axes[2].plot(fine[::8], [np.percentile(y, middle) for y in true], ".", color=INK, ms=3)
    for ax in axes:
        for edge in edges:
            ax.axvline(edge, color=GREY, lw=0.4, alpha=0.6)
        decorate(ax, "age", "height, cm" if ax is axes[0] else "")
    return figure


def paths() -> Figure:
    """Couplings between neighbouring times, and what runs between them."""
    true = pt.datasets.process_paths("bifurcation", 6000, 6, SEED)[:, :, 1:]
    at, points = pt.datasets.one_snapshot_each(true, SEED, np.linspace(0, 1, 6))
    snaps = pt.Snapshots.from_arrays(at, points, bounds=BOUNDS[:1], bins=np.linspace(0, 1, 6))
    model = pt.TrajectorySynthesizer(1.0, 1e-5, seed=SEED).fit(snaps)
    figure = Figure(figsize=(WIDTH, 3.2), layout="constrained", facecolor="white")
    axes = figure.subplots(1, 3, sharey=True)
    rng = np.random.default_rng(SEED)
    title(axes[0], "nobody is seen twice")
    some = rng.choice(len(at), 1500, replace=False)
    wide = at[some] + rng.uniform(-0.02, 0.02, len(some))
    axes[0].scatter(wide, points[some, 0], color=INK, s=2, lw=0)
    title(axes[1], "the least motion")
    knots = model.sample(200, observation_noise=False, seed=SEED).values[:, :, 0]
    axes[1].plot(model.times, knots.T, color=GREY, lw=0.4, alpha=0.5)
    axes[1].plot(model.times, knots.T, "o", color=BLUE, ms=2)
    title(axes[2], "bridges (grey), splines (red)")
    fine = np.linspace(0, 1, 301)
    for kind, colour in (("bridge", GREY), ("spline", VERMILION)):
        drawn = model.sample(14, times=fine, interpolation=kind, seed=SEED).values[:, :, 0]
        axes[2].plot(fine, drawn.T, color=colour, lw=1, alpha=0.75)
    for ax in axes:
        decorate(ax, "time", "feature" if ax is axes[0] else "")
    return figure


def budgets() -> Figure:
    """The same people at the same time, bought with more and more."""
    snaps, times, points = snapshots(500)
    figure, axes = panels(4)
    for ax, epsilon in zip(axes, (0.1, 0.5, 2.0), strict=False):
        model = pt.TrajectorySynthesizer(epsilon, 1e-5, seed=SEED).fit(snaps)
        title(ax, f"epsilon {epsilon:g}")
        released = model.sample(500, times=[TIMES[SHOWN]], seed=SEED).values[:, 0]
        ax.scatter(*released.T, color=VERMILION, s=4, lw=0)
    title(axes[3], "the 500 real people")
    axes[3].scatter(*points[times == TIMES[SHOWN]].T, color=INK, s=4, lw=0)
    return figure


def panels(number: int) -> tuple[Figure, list[Axes]]:
    """Square panels that show the box."""
    figure = Figure(figsize=(WIDTH, WIDTH / number + 0.35), layout="constrained", facecolor="white")
    axes = list(figure.subplots(1, number))
    for ax in axes:
        ax.set(xlim=BOUNDS[0], ylim=BOUNDS[1], xticks=[], yticks=[], aspect="equal")
        ax.spines[:].set_color("#9aa4ad")
    return figure, axes


def title(ax: Axes, text: str) -> None:
    ax.set_title(text, fontsize=10, color=INK)


if __name__ == "__main__":
    main()
