"""What the theorems say, measured: convergence, statistical rate, paths, discretisation.

The measurements are in `theorems`, on simulated people, without privacy. Here: which of them are
made, the rates and exponents fitted to them, and what they say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial

from reproduce import fits, rates_plot, theorems
from reproduce.known_process import Process
from reproduce.parallel import call, in_parallel
from reproduce.rates_text import text
from reproduce.result import Options, Reproduction
from reproduce.tables import Row

Task = tuple[Callable[[], list[Row]]]


@dataclass(frozen=True)
class Descent:
    """A descent whose objective is watched."""

    times: int
    lam: float
    tau: float
    shift: float
    eta: float
    steps: int
    m: int


@dataclass(frozen=True)
class Settings:
    """Sizes of all measurements."""

    descents: tuple[Descent, ...] = (
        Descent(17, 2.0, 0.08, 0.2, 0.0125, 320, 64),  # weak fit: many times, a large lambda
        *(Descent(5, 1.0, tau, 0.15, 0.004, 120, 100) for tau in (0.02, 0.04, 0.08)),
    )
    curved_steps: int = 600  # for the curvature of V in the first descent
    times: tuple[int, ...] = (4, 8, 16, 32)
    people: tuple[int, ...] = (2, 8, 32, 128)
    m: int = 32
    fine: int = 128  # particles where the marginals are exact
    steps: int = 500
    kept: tuple[int, ...] = (4, 8, 16)  # of the largest number of times, with kept_people
    kept_people: int = 32
    factors: tuple[float, ...] = (1 / 4, 4.0)  # of lambda, at the middle of the grid
    paths: tuple[int, ...] = (100, 1000, 10_000, 100_000)
    clouds: tuple[int, ...] = (8, 16, 32, 64, 128)
    ratios: tuple[int, ...] = (1, 2, 4, 8)
    eta: float = 0.000625  # smallest step, of which ratios are multiples
    length: float = 1.5  # of the settled dynamics, in their time


QUICK = Settings(  # few sizes: most of the time goes into compiling each
    descents=(Descent(3, 2.0, 0.08, 0.2, 0.02, 30, 8), Descent(3, 1.0, 0.04, 0.15, 0.01, 30, 8)),
    curved_steps=30,
    times=(3, 4),
    people=(2, 4),
    m=8,
    fine=8,
    steps=40,
    kept=(3,),
    kept_people=4,
    factors=(4.0,),
    paths=(50, 100),
    clouds=(8,),
    ratios=(1, 2, 4),
    eta=0.005,
    length=0.2,
)


def run(options: Options) -> Reproduction:
    """Measure, fit, draw, tell."""
    settings = QUICK if options.quick else Settings()
    wanted = tasks(settings, options.seeds)
    if options.quick:  # compiling, which is most of it, would be done again on every core
        measured = [call(*task) for task in wanted]
    else:
        measured = in_parallel(call, wanted, options.progress)
    rows = [row for each in measured for row in each]
    rows += fits.fitted(rows)
    constants = ("SIGMA", "WIDTH", "BLOCKS", "KEPT", "PATHS", "PEOPLE")
    return Reproduction(
        name="rates",
        settings={
            "seeds": options.seeds,
            "process": asdict(Process()),
            **asdict(settings),
            "constants": {name.lower(): getattr(theorems, name) for name in constants},
        },
        rows=rows,
        text=text(rows),
        figures=rates_plot.figures(rows),
    )


def tasks(settings: Settings, seeds: int) -> list[Task]:
    """Every measurement, long ones first so that no core idles at the end."""
    weak = {**asdict(settings.descents[0]), "steps": settings.curved_steps}
    del weak["shift"]
    wanted: list[Task] = [(partial(theorems.curvature, **weak, seed=0),)]

    def repeat(*measures: Callable[..., list[Row]]) -> None:
        seeded = [partial(each, seed=seed) for seed in range(seeds) for each in measures]
        wanted.extend((each,) for each in seeded)

    error = partial(theorems.statistics, m=settings.m, steps=settings.steps)
    largest, crowd = max(settings.times), max(settings.people)
    repeat(*(partial(theorems.convergence, **asdict(each)) for each in settings.descents))
    for times in sorted(settings.times, reverse=True):
        cells = [partial(error, times=times, people=people) for people in settings.people]
        repeat(*cells, partial(error, times=times, people=crowd, noise=False))
        wanted.append((partial(theorems.interpolation, times, settings.fine),))
    people, middle = settings.kept_people, settings.times[len(settings.times) // 2]
    for factor in settings.factors:
        repeat(partial(error, times=middle, people=people, factor=factor))
    for kept in settings.kept:
        repeat(partial(error, times=largest, people=people, kept=kept))
    bias = partial(theorems.discretisation, length=settings.length)
    eta = settings.eta
    repeat(
        *(partial(bias, "particles", m, 8 * eta, 1) for m in settings.clouds),
        *(partial(bias, "steps", settings.m, eta, ratio) for ratio in settings.ratios),
    )
    size = {"times": settings.times[1], "people": people, "m": settings.m, "steps": settings.steps}
    wanted.append((partial(theorems.representer, **size, counts=settings.paths, seed=0),))
    return wanted
