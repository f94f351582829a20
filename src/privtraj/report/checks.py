"""Plain-language checks of a released model. Made from the model file alone: nothing is spent.

What is computed stands here; names, limits and sentences stand in `assets/checks.toml`.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from privtraj.assess.common import Estimate, Finding
from privtraj.assess.groups import Group, groups_of, sentences
from privtraj.assess.questions import Asked
from privtraj.assess.ranges import LIMITS, pile_up, timing
from privtraj.base.arrays import Floats
from privtraj.base.errors import about
from privtraj.columns.kinds import Angle, Axes, Integer, Number, of_tables
from privtraj.measures.counts import CELLS
from privtraj.privacy.certificate import (
    EXPECTED_LOSSES,
    FEWEST_PEOPLE,
    LARGE_EPSILON,
    MOST_RECORDS,
    chance_in_words,
    weaknesses,
)
from privtraj.report.labels import percent, percent_up, round_number, time_labels, whole_number

if TYPE_CHECKING:
    from privtraj.assess.ask import Answers
    from privtraj.assess.quality import Quality
    from privtraj.model.model import TrajectoryModel

Grade = Literal["good", "look closer", "poor"]

LOST = 5
"""People below which most of the structure at a time is taken to be lost, as a poor worth is."""
NAMED = 3
"""Lost values that the headline names, the most frequent first."""
MOST_NUMBERS = 12
"""Whose correlations are looked at, the first ones."""
MOST_ROWS = 24
"""Groups and correlations that are listed, the lost ones, and the strongest, first."""
BORDER = 0.125
"""Of a cell, from either side: a quarter of it, where gaps between cells are."""
FALSE_ALARMS = 0.05
"""Cells, of all that were counted, in which noise alone is expected to reach `fewest_told`."""
PARTICLES = 1.5
"""Fewer cannot be a group: whether a thin place gets one particle or none is chance."""


def checks(model: TrajectoryModel, people: Floats, quality: Quality | None = None) -> list[Finding]:
    """All that can be said of the model; people: numbers of sampled ones (n, Q, k), as shares of
    the box."""
    first = (_groups(groups_of(model)), _worth(model, quality), _guarantee(model))
    made = (*first, _head_count(model), _detail(model, people), _fit(model))
    return [check for some in made for check in some]


def graded(value: float, good: float, fair: float) -> Grade:
    """good: limit of a good value, fair: of one to look at; which way is better follows."""
    sign = 1 if good < fair else -1
    if sign * value <= sign * good:
        return "good"
    return "look closer" if sign * value <= sign * fair else "poor"


def judged(
    check: str, number: float, limits: Sequence[float] | None = None, /, **words: str
) -> Finding:
    """A check of `checks.toml` on its number; words: of its sentences.

    limits: of a good and a fair number, if not those of the file.
    """
    texts = _texts()[check]
    grade = graded(number, *(limits or texts["limits"]))
    said = " ".join(texts[part] for part in ("sentence", grade) if part in texts)
    name, value = texts["name"].format(**words), texts["value"].format(**words)
    return Finding(name, grade, (said.format(**words),), (), {check: float(number)}, value)


@cache
def _texts() -> dict[str, dict[str, Any]]:
    return tomllib.loads((files("privtraj.report") / "assets/checks.toml").read_text("utf-8"))


def summary(made: Sequence[Finding]) -> str:
    """The poor ones by name, then how many are worth a closer look."""
    poor = [f"{check.name} ({check.value})" for check in made if check.verdict == "poor"]
    closer = sum(check.verdict == "look closer" for check in made)
    if not poor and not closer:
        return f"All {len(made)} checks are good."
    parts = [f"poor: {'; '.join(poor)}"] if poor else []
    if closer:
        parts.append(f"{closer} {'is' if closer == 1 else 'are'} worth a closer look")
    return f"Of {len(made)} checks, {'; '.join(parts)}. The others are good."


def headline(made: Sequence[Finding], quality: Quality | None) -> list[tuple[str, str]]:
    """Numbers for the top of the page, and what they are: values that are lost before all else."""
    lost = sum(int(check.numbers.get("lost_values", 0)) for check in made)
    values = sum(int(check.numbers.get("values", 0)) for check in made)
    good = sum(check.verdict == "good" for check in made)
    figures = [(f"{lost} of {values}", "Values of categories that are lost")] if values else []
    if quality is not None and quality.at_times:
        figures.append((f"≈ {in_people(quality.worth)}", "Worth of numbers, in people per time"))
    return [*figures, (f"{good} of {len(made)}", "Checks that are good")]


# Worth -----------------------------------------------------------------------------------------


def in_people(worth: Estimate) -> str:
    """About so many."""
    return f"{about(worth.worth)}{' or more' * worth.or_more}"


def _between(worth: Estimate) -> str:
    return f"{about(worth.low)} to {about(worth.high)}"


def _groups(groups: Sequence[Group]) -> Iterator[Finding]:
    """Whether values of categories are known beyond what everybody has, the worst first."""
    if not groups:
        return
    lost = [one for one in groups if one.lost]
    held = max((one.share for one in lost), default=0.0)
    worst = [f"{one.column} {one.value}" for one in sorted(lost, key=lambda one: -one.share)]
    names = f": {', '.join(worst[:NAMED])}{' ...' * (len(worst) > NAMED)}" if worst else ""
    words = {"names": names, "lost": str(len(lost)), "values": str(len(groups)), "kept": ". ".join(
        f"{one[:1].upper()}{one[1:]}" for one in sentences(groups))}  # fmt: skip
    check = judged("lost", held, **words)
    yield replace(check, numbers={"lost_values": len(lost), "values": len(groups), "lost": held})


def _worth(model: TrajectoryModel, quality: Quality | None) -> Iterator[Finding]:
    """Over all, and at the time that is known worst."""
    if quality is None or not quality.at_times:
        return
    worth = quality.worth
    words = {"people": in_people(worth), "between": _between(worth), "refits": str(quality.refits)}
    yield judged("worth", worth.worth, **words)
    worst = int(np.argmin([each.worth for each in quality.at_times]))
    when = time_labels(np.array(quality.numeric_times), model.datetime)[worst]
    there = quality.at_times[worst]
    yield judged("worst_time", there.worth, people=in_people(there), time=when)


def worth_tables(
    model: TrajectoryModel, quality: Quality | None, asked: Answers
) -> dict[str, Any] | None:
    """Rows (when, about how many people, between which numbers, whether it is mostly lost) of times
    and (who, share, how far off means are, whether lost) of groups; and the strongest correlations
    with their intervals, where these say something, for the page."""
    if quality is None or not quality.at_times:
        return None

    def row(name: str, worth: Estimate) -> tuple[str, str, str, bool]:
        return name, in_people(worth), _between(worth), worth.worth < LOST

    times = time_labels(np.array(quality.numeric_times), model.datetime)
    groups, found = quality.groups, []
    numbers = asked.columns.numbers[:MOST_NUMBERS]
    for pair in combinations(numbers, 2):
        (one,) = asked.ask(Asked("correlation", pair)).rows
        if one["low"] is not None and max(one["low"], -one["high"]) > 0:
            names = ", ".join(asked.columns.known[k].name for k in pair)
            found.append((abs(one["value"]), names, f"{one['low']:.2f} to {one['high']:.2f}"))
    return {
        "times": [row(*pair) for pair in zip(times, quality.at_times, strict=True)],
        "groups": [
            (f"{one.column}: {one.value}", percent(one.share), f"{min(one.mean_off, 9.9):.1f}",
             bool(one.lost))
            for one in groups[:MOST_ROWS]
        ],
        "correlations": [row[1:] for row in sorted(found, reverse=True)[:MOST_ROWS]],
    }  # fmt: skip


# The guarantee ---------------------------------------------------------------------------------


def warnings(model: TrajectoryModel) -> list[str]:
    """Those of the certificate, and what the released number of people says of its delta."""
    certificate, people = model.certificate, sum(_numbers(model, "people_per_time"))
    if not certificate.private or certificate.counts_are_public or not people:
        return certificate.warnings
    several = certificate.public_inputs.get(MOST_RECORDS) != 1
    return weaknesses(certificate.epsilon, certificate.delta, people, at_most=several)


def _guarantee(model: TrajectoryModel) -> Iterator[Finding]:
    """What the guarantee leaves to an attacker, and delta times the number of people."""
    certificate = model.certificate
    right = {"right": percent_up(certificate.chance_right), "words": certificate.in_words}
    check = judged("attacker", certificate.chance_right, **right)
    large = certificate.private and certificate.epsilon > LARGE_EPSILON
    if large and check.verdict == "good":
        check = replace(check, verdict="look closer")
    weak = [f"{one[:1].upper()}{one[1:]}." for one in warnings(model) if one.startswith("epsilon")]
    yield replace(check, seen=(" ".join([check.sentence, *weak]),))
    if certificate.private and certificate.delta:
        people = sum(_numbers(model, "people_per_time"))
        least = max(people, FEWEST_PEOPLE)
        yield judged(
            "delta",
            certificate.delta * least,
            chance=chance_in_words(certificate.delta),
            people=f"about {whole_number(least)}" if people else f"{least} or more",
            limit=f"{EXPECTED_LOSSES / least:.1g}",
        )


# People over time and at the bounds ------------------------------------------------------------


def _head_count(model: TrajectoryModel) -> Iterator[Finding]:
    """Whether people fill the range of time and the bounds, and how many there are."""
    filled, exact = timing(model), model.certificate.counts_are_public
    if filled is not None:
        where = {0: "at the start of", -1: "at the end of", None: "in one part of"}[filled.end]
        beyond = {0: "before it begins", -1: "after it ends", None: ""}[filled.end]
        missed = f"the range misses records {beyond}, which count there, or"
        words = {"where": where, "cause": missed if beyond else "the range"}
        words |= {"share": percent(filled.share), "empty": percent(filled.empty)}
        yield judged("timing", filled.off, LIMITS["time"], time=model.time_name, **words)
    if people := _numbers(model, "people_per_time"):
        middle, least = float(np.median(people)), min(people)
        how = "Declared public." if exact else "Counted with noise, paid for."
        ends = map(whole_number if exact else round_number, (least, max(people)))
        words = {"range": " to ".join(dict.fromkeys(ends)), "how": how}
        check = judged("people", model.certificate.target_epsilon * middle, **words)
        if filled is not None and graded(filled.off, *LIMITS["time"]) != "good":
            cause = "First look at the range of time: people are in a small part of it."
            check = replace(check, seen=(f"{how} {cause}",))
        elif least < middle / 4:
            thin = "Some times have far fewer people than others and are known less well."
            verdict = "look closer" if check.verdict == "good" else check.verdict
            check = replace(check, verdict=verdict, seen=(f"{check.sentence} {thin}",))
        yield check
    if (piled := pile_up(model)) is not None:
        words = {"share": percent(piled.share), "name": piled.column, "wall": percent(piled.wall)}
        yield judged("walls", piled.excess, LIMITS["bounds"], end=piled.end, **words)


# Detail that can be trusted --------------------------------------------------------------------


def _detail(model: TrajectoryModel, people: Floats) -> Iterator[Finding]:
    """What noise hides, and detail that a model shows and nobody measured."""
    if shares := _numbers(model, "significant_share"):
        mean, least = float(np.mean(shares)), min(shares)
        words = {"mean": percent(mean), "least": percent(least)}
        yield judged("significant", min(mean, least + 0.2), **words)
    sides = _numbers(model, "cell_side")
    start, end = model.knots[[0, -1]]
    counted = _numbers(model, "people_per_time")
    noises = [e["noise_epsilon"] for e in model.certificate.ledger if e["what"] == CELLS]
    per_side = model.settings.get("cells_per_side")
    if sides and counted and noises and per_side and not Axes.of(model.columns).mixed:
        at = (model.knots - start) / (end - start)
        fewest = fewest_told(min(noises), len(sides) * per_side ** model.particles.shape[2])
        here = _at_times(model, counted, at)
        least = np.maximum(fewest, PARTICLES * here / model.particles.shape[1])
        told = least / np.maximum(here, 1.0)
        shares = small_groups(model.particles, model.weights, _at_times(model, sides, at), told)
        share, few = float(np.mean(shares)), round_number(f"{np.median(least):.2g}")
        words = {"share": percent(share), "worst": percent(max(shares))}
        yield judged("groups", share, fewest=few, **words)
    numbers = [column for column in of_tables(model.columns) if isinstance(column, Number)]
    rounded = model.constraints.precision  # such numbers have gaps of their own
    smooth = [
        k
        for k, column in enumerate(numbers)
        if not isinstance(column, Integer | Angle) and column.name not in rounded
    ]
    if sides and smooth and max(sides) < 1:
        at = np.linspace(0, 1, people.shape[1])
        lacking = gap(people[:, :, smooth], _at_times(model, sides, at))
        yield judged("gaps", lacking, share=percent(lacking))
    particles = model.particles[..., Axes.of(model.columns).numbers]
    if particles.shape[2]:  # bandwidth against the spread of the particles, per coordinate
        weights = model.weights[..., None] / model.weights.sum(axis=1)[:, None, None]
        mean_place = (weights * particles).sum(axis=1, keepdims=True)
        variance = (weights * (particles - mean_place) ** 2).sum(axis=1).mean(axis=1)
        total = np.sqrt(variance + model.bandwidth**2)
        ratio = float(np.mean(model.bandwidth / np.maximum(total, 1e-12)))
        box = percent(float(model.bandwidth.mean()))
        yield judged("blur", ratio, box=box, spread=percent(ratio))


def gap(people: Floats, sides: Floats) -> float:
    """Share of people that the borders of cells lack, for the feature with most of that.

    people: (n, Q, k), k > 0, at times at which cells have these sides (Q,). If density is smooth,
    people are anywhere in their cells, and a quarter of them within an eighth of a border:

        1 - P(phase is near 0 or 1) / (2 BORDER),    phase = x / side mod 1.
    """
    phase = people / sides[None, :, None] % 1
    near = (phase < BORDER) | (phase > 1 - BORDER)
    return float(max(1 - near.mean(axis=(0, 1)).min() / (2 * BORDER), 0.0))


def fewest_told(epsilon: float, cells: int) -> float:
    """People that noise would hardly make up in any of so many cells: n with

    cells e^(-epsilon n) / 2 = FALSE_ALARMS,    as discrete Laplace noise is n or more.
    """
    return math.log(cells / (2 * FALSE_ALARMS)) / epsilon


def small_groups(particles: Floats, weights: Floats, sides: Floats, fewest: Floats) -> list[float]:
    """(K,) share of people in groups that are smaller than shares `fewest` (K,) of all, of
    particles (K, m, d) with weights (K, m), in cells of these sides (K,).

    A group is all that is connected through neighbouring cells, corners included.
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    shares = []
    for cloud, mass, side, few in zip(particles, weights, sides, fewest, strict=True):
        cells, of_cell = np.unique(np.floor(cloud / side), axis=0, return_inverse=True)
        pairs = cKDTree(cells).query_pairs(1.0, p=np.inf, output_type="ndarray").T
        linked = coo_matrix((np.ones(pairs.shape[1]), pairs), shape=(len(cells), len(cells)))
        _, group_of_cell = connected_components(linked, directed=False)
        groups = np.bincount(group_of_cell[of_cell.ravel()], mass / mass.sum())
        shares.append(float(groups[(groups < few) & (groups < groups.max())].sum()))
    return shares


def _at_times(model: TrajectoryModel, values: Sequence[float], at: Floats) -> Floats:
    """(Q,) values (K,) of the windows nearest to times `at` (Q,), shares of the range."""
    middles = np.array(_numbers(model, "people_middles"))
    start, end = model.knots[[0, -1]]
    known = len(middles) == len(values)
    places = (middles - start) / (end - start) if known else np.linspace(0, 1, len(values))
    return np.asarray(values)[np.abs(at[:, None] - places).argmin(axis=1)]


# The fit ---------------------------------------------------------------------------------------


def _fit(model: TrajectoryModel) -> Iterator[Finding]:
    """Noise and heat of the last step, and Sinkhorn's error."""
    noise = model.diagnostics.get("noise_over_bandwidth")
    heat = model.diagnostics.get("effective_temperature")
    during = model.diagnostics.get("marginal_error")
    if noise is not None:
        yield judged("noise", noise, ratio=f"{noise:.2g}")
    if heat is not None:
        yield judged("temperature", heat, heat=round_number(f"{heat:.2g}"))
    if not model.curves:  # which do without couplings
        left = model.couplings("entropic").error
        steps = "" if during is None else f", {during:.2g} in the last step"
        yield judged("couplings", max(left, during or 0.0), error=f"{left:.2g}", steps=steps)


def _numbers(model: TrajectoryModel, name: str) -> list[float]:
    """A diagnostic of all times, less what was not finite."""
    return [value for value in model.diagnostics.get(name) or [] if value is not None]
