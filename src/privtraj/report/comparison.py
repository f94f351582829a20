"""The page of an evaluation: the model beside the raw data. It must not leave the room."""

from __future__ import annotations

import math
import os
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from privtraj.arrays import Floats
from privtraj.report import sections
from privtraj.report.page import Page, asset, listed_names, write_page
from privtraj.report.page_data import (
    QUANTILES,
    SEED,
    densities,
    packed,
    packed_bytes,
    page_data,
    sampled,
)
from privtraj.report.panels import PANEL, RealBands, panels
from privtraj.report.verdicts import Grade, Verdict, graded, percent, round_number

if TYPE_CHECKING:
    from privtraj.metrics.evaluation import Evaluation
    from privtraj.metrics.records import Records
    from privtraj.metrics.table import Score
    from privtraj.model import TrajectoryModel


_NUMBERS = 120_000  # of real records that are drawn
_MOST = 400  # of them at each time
_LEAST = 8  # at a time, for quantiles
_MEANS = {
    "w2": "how far people must move to become the others, far moves count more",
    "squared_w2": "the same, squared",
    "w1": "how far people must move on average",
    "sliced_w2": "the same as W2, seen from many sides",
    "energy": "difference of all distances between people",
    "query_error": "error of counts in random boxes",
    "density_jsd": "difference of shares in a grid of cells",
    "hotspot_ndcg": "are the fullest cells the right ones",
    "kendall_tau": "are cells in the right order, from full to empty",
    "auc": "how well a classifier tells them apart",
    "path_w2": "how far whole paths must move to become the others",
    "length_jsd": "difference of how far people travel",
    "diameter_jsd": "difference of how wide paths are",
    "trip_jsd": "difference of where paths begin and end",
    "pattern_f1": "are frequent moves between cells the right ones",
    "path_auc": "how well a classifier tells whole paths apart",
}


def write_comparison(
    model: TrajectoryModel,
    found: Evaluation,
    records: Records,
    path: str | os.PathLike[str],
    *,
    force: bool = False,
    seed: int = SEED,
) -> None:
    """Write the page as one .html file, whole or not at all; it holds raw records."""
    write_page(comparison(model, found, records, seed), path, force)


def comparison(
    model: TrajectoryModel, found: Evaluation, records: Records, seed: int = SEED
) -> Page:
    """The page of what `evaluate` found, with the records it was found on."""
    shown = sampled(model, seed)
    clouds = records.clouds()
    real = RealBands(model.numeric_times, _bands(clouds))
    names = listed_names(model.features)
    notes = "".join(f"<p class='note'>{escape(note)}.</p>" for note in found.notes)
    body = [
        ("scores", "How close it is", "Scores", _scores(found) + notes),
        ("people", "Real and synthetic people", "People", _people()),
        ("features", "Each feature over time", "Features", panels(model, shown, real)),
        ("made", "How this was made", "Made from", sections.table(_made(model, found))),
    ]
    return Page(
        title=f"Not for release: {names} against the raw data",
        kicker="<span><b>privtraj</b> evaluation</span>",
        heading=f"Against the raw data: {escape(names)} over {escape(model.time_name)}",
        lead=_lead(found),
        sections=body,
        data={**page_data(model, shown), "panel": PANEL, "real": _real(clouds, shown.ranges)},
        footer="This page was made from the model and from raw records, some of which it contains. "
        "It is for the eyes of people who may see those records.",
        figures=[
            (_people_worth(found), "Worth, in people per time"),
            (percent(found.memorisation.share_close), "Very close to a real person"),
            (percent(found.memorisation.share_expected), "The same of other real people"),
        ],
        banner="<div class='banner' role='alert'><p><strong>Not for release</strong>This page "
        "compares with raw data and contains some of them; it must not leave the room.</p></div>",
    )


def _lead(found: Evaluation) -> str:
    return (
        f"The model is worth {_people_worth(found)} real people per time: that many raw, "
        "unprotected records at each time would come as close to the population."
    )


def _people_worth(found: Evaluation) -> str:
    more = " or more" if found.worth.people >= found.worth.most else ""
    return f"{round_number(found.worth.people)}{more}"


def evaluation_verdicts(found: Evaluation) -> list[Verdict]:
    """Worth, copies, and how far from real people, in plain words."""
    verdicts = [_worth(found), _copies("Copies of records", found.memorisation)]
    if found.path_memorisation is not None:
        verdicts.append(_copies("Copies of paths", found.path_memorisation))
    gaps = [s.gap for s in found.scores if math.isfinite(s.gap)]
    if gaps:
        middle = float(np.median(gaps))
        verdicts.append(
            Verdict(
                "Distance to real people",
                graded(middle, 0.15, 0.4),
                f"{percent(max(middle, 0))} of the way to no knowledge",
                "Middle of all scores below: 0 % is like other real people, 100 % like people "
                "spread evenly over the box.",
            )
        )
    return verdicts


def _worth(found: Evaluation) -> Verdict:
    w = found.worth
    most = w.people >= w.most
    told = f"{round_number(w.low)} to {round_number(w.high)} cannot be ruled out"
    if most:
        told = f"These records cannot tell more than {round_number(w.most)} people apart"
    return Verdict(
        "Worth",
        "good" if most else graded(w.people, 50, 5),
        f"{_people_worth(found)} people per time",
        f"{told}. Other real people are worth {round_number(found.worth_floor)}, people spread "
        f"evenly over the box {round_number(found.worth_ceiling)}.",
    )


def _copies(name: str, m: Any) -> Verdict:
    excess = m.share_close / max(m.share_expected, 1e-9)
    grade = graded(excess, 1.5, 3)
    told = {
        "good": "No sign that real people come back.",
        "look closer": "A little more than chance: look where many people are alike.",
        "poor": "Far more than chance: find out why before anything is released.",
    }[grade]
    ratio = f" Median distance: {m.ratio:.2g} times theirs." if math.isfinite(m.ratio) else ""
    return Verdict(
        name,
        grade,
        f"{percent(m.share_close)} very close, {percent(m.share_expected)} expected",
        f"Synthetic people as close to a real one as the closest other real people are. {told}"
        f"{ratio}",
    )


def _scores(found: Evaluation) -> str:
    tables = [_table("Single times", found.scores)]
    if found.path_scores:
        tables.append(_table("Whole paths", found.path_scores))
    floor = escape(found.settings["floor"])
    return (
        f"{sections.verdict_cards(evaluation_verdicts(found))}"
        f"<p class='note'>Every score stands between its floor ({floor}) and its ceiling "
        "(people spread evenly over the box). The bar shows where: empty is as good as real "
        f"people, full is no knowledge at all.</p>{''.join(tables)}"
    )


def _table(caption: str, scores: tuple[Score, ...]) -> str:
    rows = "".join(_row(score) for score in scores)
    heads = "".join(f"<th scope='col' class='n'>{h}</th>" for h in ("Floor", "Model", "Ceiling"))
    return (
        f"<div class='scroll'><table class='rates'><caption>{caption}</caption><thead><tr>"
        f"<th scope='col'>Score</th>{heads}<th scope='col'>Better</th><th scope='col' "
        "class='third'>Floor to ceiling</th><th scope='col'>Verdict</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _row(score: Score) -> str:
    known = math.isfinite(score.gap)
    grade: Grade = graded(score.gap, 0.15, 0.4) if known else "for information"
    numbers = "".join(
        f"<td class='n'>{_number(v)}</td>" for v in (score.floor, score.value, score.ceiling)
    )
    bar = sections.meter(min(max(score.gap, 0.0), 1.0), 0.0) if known else ""
    said = grade if known else "cannot tell"
    return (
        f"<tr><th scope='row'>{escape(score.label)}<span class='how'>{_MEANS.get(score.name, '')}"
        f"</span></th>{numbers}<td>{score.better}</td>"
        f"<td>{bar}</td><td><span class='tag {sections.CLASSES[grade]}'>{said}</span></td></tr>"
    )


def _number(value: float) -> str:
    return f"{value:.3g}" if math.isfinite(value) else "none"


def _people() -> str:
    return (
        "<p class='lead'>Filled dots are synthetic people, rings are real records of the nearest "
        f"fitted time, some of them where there are many.</p>{asset('explorer.html')}"
    )


def _made(model: TrajectoryModel, found: Evaluation) -> list[tuple[str, str]]:
    s = found.settings
    return [
        ("records", round_number(s["records"])),
        ("people", round_number(s["people"])),
        ("synthetic people", round_number(s["synthetic_people"])),
        ("floor", s["floor"]),
        ("times compared", str(len(s["times"]))),
        ("seed", str(s["seed"])),
        ("model is private", "yes" if s["private"] else f"no: {model.certificate.caveat}"),
        ("model sha256", model.certificate.model_sha256 or model.sha256),
    ]


def _bands(clouds: list[Floats]) -> Floats:
    """(d, 5, T) quantiles of clouds (n_i, d), nan where there are too few."""
    few = np.full((len(QUANTILES), clouds[0].shape[1]), np.nan)
    rows = [np.quantile(x, QUANTILES, axis=0) if len(x) >= _LEAST else few for x in clouds]
    found: Floats = np.stack(rows).transpose(2, 1, 0)
    return found


def _real(clouds: list[Floats], ranges: Floats) -> dict[str, Any]:
    """Some records of each time, (d, n_i) after (d, n_i), and their densities (d, T, bins)."""
    d = clouds[0].shape[1]
    most = int(np.clip(_NUMBERS // (d * len(clouds)), 5, _MOST))
    rng = np.random.default_rng(SEED)
    some = [rng.permutation(x)[:most] for x in clouds]
    counts = [len(x) for x in some]
    blank = np.zeros((d, 1, 1))
    heaps = [densities(x[:, None], ranges) if len(x) else blank for x in clouds]
    bins = max(heap.shape[2] for heap in heaps)
    density = np.concatenate([np.broadcast_to(heap, (d, 1, bins)) for heap in heaps], axis=1)
    return {
        "counts": counts,
        "starts": np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(int).tolist(),
        "points": packed(np.concatenate([x.T.ravel() for x in some])),
        "density": packed_bytes(density),
    }
