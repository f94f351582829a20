"""Every privacy figure of the paper, recomputed: which accounting it came from, and what is true.

    python experiments/accounting.py [--quick] [--out FILE.json]

One Markdown table, a row per figure, epsilon at the delta of the row:
    CLT            mu = rho sqrt(K (e^{1 / tau^2} - 1)), the paper's Lemma 3.1, taken as if exact
    Renyi          Renyi accounting for batches drawn without replacement, replace-one, with noise
                   multiplier tau, hence with sensitivity C
    Renyi, 2 C     the same with the sensitivity that replacing a vector of norm C has
    add-remove     exact, for Poisson sampling as the paper describes it
    replace-one    exact, the same sampling, the paper's own neighbours
    per particle   exact under add-remove if "clip item-wise" means each of the 50 particles'
                   gradients, so that one person moves the sum by sqrt(50) C
    the claim      which of these, to two decimals, it comes from; whether the exact ones allow it
Exact values are privtraj's own, those of Renyi are dp-accounting's. In brackets: settings that the
paper does not state at that figure. Below the table: the batches that the annealed run, whose rho
is not stated, may have had by each accounting. Two minutes of one core, shared among all there are.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from common import in_parallel, write_json

PARTICLES = 50
EXACT = ("add-remove", "replace-one")
READINGS = ("CLT", "Renyi", "Renyi, 2 C", *EXACT, "per particle")
COARSE, COARSER = 1e-3, 1e-2  # grids of the loss: to search on, and for epsilons in the hundreds


@dataclass(frozen=True)
class Steps:
    """`times` noisy sums over Poisson batches of `batch` of `people`; over everybody if it is None.

    noise: standard deviation in units of the norm bound, tau in the paper. replaced: how far one
    person replaced moves the sum, in the same unit.
    """

    noise: float
    times: int = 1
    batch: int | None = None
    people: int = 1
    replaced: float = 2.0

    @property
    def rate(self) -> float:
        return self.batch / self.people if self.batch else 1.0

    def __str__(self) -> str:
        batches = f"rho {self.batch}/{self.people}, K {self.times}, " if self.batch else ""
        return f"{batches}noise {self.noise:.3g}"


@dataclass(frozen=True)
class Stated:
    """A part of which the paper says nothing but its (epsilon, delta)."""

    epsilon: float
    delta: float

    def __str__(self) -> str:
        return f"({self.epsilon:.3g}, {self.delta:.2g}) taken at its word"


Parts = tuple[Steps | Stated, ...]


@dataclass(frozen=True)
class Figure:
    """A privacy figure of the paper, and the settings it is for.

    rule: how the parts make the whole.
        together        composed
        added up        each part at its share of delta, epsilons added (the paper's Lemma A.2)
        public choice   only the people of a public, random share of the times take part
        rate            (wrong) that share taken as a factor of the sampling rate
        scaled          (wrong) that share taken as a factor of epsilon and of delta
    missing: settings that the paper does not state there.
    """

    what: str
    epsilon: float
    delta: float
    parts: Parts
    rule: str = "together"
    share: float = 1.0
    missing: str = ""
    note: str = ""


def figures() -> list[Figure]:
    """Every privacy figure in the text, the captions and the tables of the paper.

    K = 250 and tau = 1 stand in a comment of the paper's source, rho = 20/N at its warm start and
    5/N without. N of digit 6 at ten times: MNIST has 5918 sixes, which are 394 at each of fifteen.
    """
    warm, polish = Steps(1.0, 20, 20, 626), Steps(2.0, 50, 20, 3000)
    means, count = private_means(1.0, 5e-4), one_count(1 / 9, 0.01 / 9)
    three_counts = replace(count, replaced=math.sqrt(2))  # a person is in one of three cells
    half = Figure(
        *("5 of 10 times, a public choice", 0.34, 5e-4, (Steps(1.0, 100, 5, 626),)),
        *("public choice", 0.5, "rho, tau"),
    )
    phases = tuple(Steps(tau, k, 20, 3000) for tau, k in ((2.5, 1000), (1.5, 500), (1.0, 500)))
    louder = tuple(replace(phase, noise=math.sqrt(phase.noise)) for phase in phases)
    clusters = Stated(1 / 3, 0.01 / 3)
    return [
        digit(1, 674, 1.19),
        digit(2, 397, 1.98),
        digit(3, 408, 1.92),
        digit(6, 394, 1.05, "a slip: what gave the other five gives 1.99"),
        digit(7, 626, 1.28),
        digit(9, 396, 1.98),
        Figure("warm start, steps, digit 7", 1.0, 5e-4, (warm,), missing="tau"),
        Figure(
            *("warm start, steps, digit 6", 1.0, 5e-4, (replace(warm, people=591),)),
            missing="tau, N",
        ),
        Figure("warm start, private means", 1.0, 5e-4, (means,)),
        Figure("warm start, both, digit 7", 2.0, 1e-3, (means, warm), missing="tau"),
        half,
        replace(half, what="the same, wrongly rho / 2", rule="rate"),
        replace(
            half,
            what="the same, wrongly epsilon / 2",
            rule="scaled",
            note="even a hidden choice gives log(1 + (e^eps - 1) / 2) > eps / 2",
        ),
        Figure("annealed, phases added up", 1.84, 0.01, phases, "added up", missing="rho"),
        Figure("annealed, phases composed", 1.84, 0.01, phases, missing="rho"),
        Figure(
            *("annealed, noise of variance C tau", 1.84, 0.01, louder),
            missing="rho",
            note="the noise that Algorithm 1 prints",
        ),
        Figure(
            *("three modes, each count", 1 / 9, 0.01 / 9, (count,)),
            missing="noise",
            note="with Lemma A.1 as printed, which lost two squares",
        ),
        Figure("three modes, steps", 1 / 3, 0.01 / 3, (polish,), missing="rho"),
        Figure(
            *("three modes, k-means, counts, steps", 1.0, 0.01, (clusters, three_counts, polish)),
            missing="rho, noise of the counts",
        ),
        Figure(
            "commented out: digit 7", 1.0, 1e-3, digit(7, 626, 1.0).parts, missing="rho, K, tau"
        ),
    ]


def digit(name: int, people: int, epsilon: float, note: str = "") -> Figure:
    """A line of the table 'Parameters corresponding to ...' in the paper's appendix."""
    steps = Steps(1.0, 250, 5, people)
    what = f"digit {name}, no warm start"
    return Figure(what, epsilon, 1e-4, (steps,), missing="K, tau", note=note)


def private_means(epsilon: float, delta: float) -> Steps:
    """Means of points in a ball of radius R, with the noise that the paper's Proposition 4.1 adds.

    Standard deviation sqrt(8 log(1 / delta)) R / (epsilon N), so that much without R / N on sums.
    """
    return Steps(math.sqrt(8 * math.log(1 / delta)) / epsilon)


def one_count(epsilon: float, delta: float) -> Steps:
    """A count with the noise that the paper's Lemma A.1 asks for as printed."""
    return Steps(math.sqrt(2 * math.log(1.25 / delta) / epsilon), replaced=1.0)


def epsilon_of(figure: Figure, reading: str) -> float | None:
    """What the figure should read under one accounting, None where that has no answer."""
    parts, delta, share = figure.parts, figure.delta, figure.share
    if figure.rule == "added up":
        each = [cost((part,), delta / len(parts), reading) for part in parts]
        return sum(each)
    if figure.rule == "rate":
        slower = tuple(replace(part, people=round(part.people / share)) for part in parts)
        return cost(slower, delta, reading)
    if figure.rule == "public choice" and reading == "add-remove":
        return chosen_times(parts[0], delta, share)
    # delta = share * delta_K(epsilon): nobody changes bins between the paper's neighbours
    whole = cost(parts, delta / share, reading)
    return share * whole if figure.rule == "scaled" else whole


def cost(parts: Parts, delta: float, reading: str) -> float | None:
    """Epsilon of the parts composed."""
    from privtraj.privacy.accounting import epsilon_at

    if reading in EXACT:
        return float(epsilon_at([event(part, reading) for part in parts], delta, reading))
    if reading == "per particle":
        return per_particle(parts, delta)
    if any(isinstance(part, Stated) for part in parts):
        return None
    return clt(parts, delta) if reading == "CLT" else renyi(parts, delta, reading)


def clt(parts: tuple[Steps, ...], delta: float) -> float:
    """Epsilon of mu-GDP, with the paper's mu for sampled steps and the exact one for full sums."""
    from privtraj.privacy.accounting import clt_mu, epsilon_at
    from privtraj.privacy.events import GaussianSum

    mus = [
        clt_mu(part.noise, part.rate, part.times) if part.batch else part.replaced / part.noise
        for part in parts
    ]
    return float(epsilon_at([GaussianSum(1 / math.hypot(*mus), "limit")], delta, "add-remove"))


def renyi(parts: tuple[Steps, ...], delta: float, reading: str) -> float:
    """dp-accounting's bound for batches of fixed size, one person replaced moving them C or 2 C."""
    import dp_accounting as dp
    from dp_accounting.rdp import RdpAccountant

    moved = 2.0 if reading == "Renyi, 2 C" else 1.0
    accountant = RdpAccountant(neighboring_relation=dp.NeighboringRelation.REPLACE_ONE)
    for part in parts:
        if part.batch:
            noise = dp.GaussianDpEvent(part.noise / moved)
            release = dp.SampledWithoutReplacementDpEvent(part.people, part.batch, noise)
        else:
            release = dp.GaussianDpEvent(part.noise / part.replaced)
        accountant.compose(release, part.times)
    return accountant.get_epsilon(delta)


def per_particle(parts: Parts, delta: float) -> float | None:
    """Exact under add-remove, one person moving the sampled sums by sqrt(m) C."""
    sampled = [isinstance(part, Steps) and part.batch is not None for part in parts]
    if not any(sampled):
        return None
    moved = [
        replace(part, noise=part.noise / math.sqrt(PARTICLES)) if is_sampled else part
        for part, is_sampled in zip(parts, sampled, strict=True)
    ]
    return on_grid(tuple(moved), delta, "add-remove", COARSER)


def on_grid(parts: Parts, delta: float, adjacency: str, interval: float) -> float:
    """Exact but for a coarser grid, whose error is on the safe side."""
    from privtraj.privacy.accounting import tally

    total = tally([event(part, adjacency) for part in parts], adjacency)
    low, high = 0.0, 2000.0
    while high - low > 1e-5 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if total.delta(middle, interval) <= delta else (middle, high)
    return high


def chosen_times(steps: Steps, delta: float, share: float) -> float:
    """Exact, where only the people of some publicly chosen times take part."""
    from privtraj.privacy.accounting import epsilon_at
    from privtraj.privacy.events import ChosenTimes

    release, times = event(steps, "add-remove")
    return float(epsilon_at([ChosenTimes(share, release, times, "chosen")], delta, "add-remove"))


def event(part: Steps | Stated, adjacency: str) -> tuple[Any, int]:
    """The part as an event of privtraj, with how often it happens."""
    from privtraj.privacy.events import GaussianSum, Opaque

    if isinstance(part, Stated):
        return Opaque(part.epsilon, part.delta, "stated", adjacency), 1
    # a GaussianSum takes a person replaced for a move of 2
    noise = part.noise * (2 / part.replaced if adjacency == "replace-one" else 1.0)
    return GaussianSum(noise, "steps", rate=part.rate), part.times


def largest_batch(figure: Figure, reading: str) -> int:
    """The largest batch with which phases, added up, cost no more than the figure says."""

    def total(batch: int) -> float:
        phases = [(replace(part, batch=batch),) for part in figure.parts]
        delta = figure.delta / len(phases)
        if reading in EXACT:
            return sum(on_grid(phase, delta, reading, COARSE) for phase in phases)
        return sum(cost(phase, delta, reading) for phase in phases)

    good, bad = 0, 128
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if total(middle) <= figure.epsilon else (good, middle)
    return good


def verdict(figure: Figure, values: dict[str, float | None]) -> str:
    """Which accounting gives the claimed figure, and whether the exact ones allow it."""
    same = [name for name in READINGS if _reads_as(values[name], figure.epsilon)]
    words = [f"from {', '.join(same)}" if same else "from none"]
    if figure.rule not in ("rate", "scaled"):
        true = [name for name in EXACT if values[name] <= figure.epsilon]
        words.append(("too small", f"holds under {' '.join(true)} only", "holds")[len(true)])
    return "; ".join([*words, *([figure.note] if figure.note else [])])


def _reads_as(value: float | None, claimed: float) -> bool:
    """Rounded up or to the nearest, at two decimals."""
    return value is not None and claimed in (math.ceil(value * 100) / 100, round(value, 2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two figures only")
    parser.add_argument("--out", help="file for every number, with its settings")
    args = parser.parse_args()

    listed = figures()
    if args.quick:
        listed = [figure for figure in listed if figure.what.startswith(("digit 7", "5 of 10"))]
    tasks = [(figure, reading) for figure in listed for reading in READINGS]
    found = iter(in_parallel(epsilon_of, tasks))

    head = ("figure", "settings", "delta", "claimed", *READINGS, "the claim")
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    numbers = []
    for figure in listed:
        values = {reading: next(found) for reading in READINGS}
        told = ["-" if value is None else f"{value:.4g}" for value in values.values()]
        settings = " + ".join(map(str, figure.parts))
        settings += f" [{figure.missing}]" if figure.missing else ""
        claim, row = verdict(figure, values), f"{figure.delta:.2g} | {figure.epsilon:.3g}"
        print(f"| {figure.what} | {settings} | {row} | {' | '.join(told)} | {claim} |")
        numbers.append({**asdict(figure), "values": values, "verdict": claim})

    if not args.quick:
        annealed = next(figure for figure in listed if figure.rule == "added up")
        names = ("CLT", "Renyi", *EXACT)
        batches = in_parallel(largest_batch, [(annealed, name) for name in names])
        numbers.append({"largest batch, annealed": dict(zip(names, batches, strict=True))})
        told = [f"{batch} ({name})" for name, batch in zip(names, batches, strict=True)]
        print(f"\nLargest batch of 3000 for the annealed {annealed.epsilon}: {', '.join(told)}.")
    write_json(args.out, numbers)


if __name__ == "__main__":
    main()
