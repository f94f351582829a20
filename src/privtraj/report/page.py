"""The report: one HTML page about a released model, complete in itself.

It is made from the model alone, so it may go wherever the model may go. Scripts and styles are
inline and named by their hashes in the page's own security policy, which forbids everything else,
the network first of all.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError
from privtraj.base.files import write_text
from privtraj.privacy.ledger import up
from privtraj.report import sections
from privtraj.report.map_view import backdrop, ways
from privtraj.report.page_data import SEED, Sampled, page_data, sampled
from privtraj.report.panels import BOX, panels
from privtraj.report.sampler import page_sampler, sampler_words
from privtraj.report.share_panels import share_panels
from privtraj.report.templates import asset, percent_up, render
from privtraj.report.verdicts import Verdict, summary, verdicts
from privtraj.report.worth import in_people, worth_tables, worth_verdicts

if TYPE_CHECKING:
    from privtraj.assess.quality import Quality
    from privtraj.model.model import TrajectoryModel

SUFFIXES = (".html", ".htm")

Progress = Callable[[int, int], None]
STYLES = ("page.css", "draw.css", "print.css")
SCRIPTS = ("page.js", "people.js", "tables.js", "download.js")


@dataclass(frozen=True)
class Page:
    """A template, the values that stand in it, and the data that its script reads."""

    template: str
    values: dict[str, Any]
    data: dict[str, Any]

    def html(self) -> str:
        """The whole file."""
        inline = {"style": "".join(map(asset, STYLES)), "script": "".join(map(asset, SCRIPTS))}
        data, policy = as_script_data(self.data), _policy(**inline)
        return render(self.template, **self.values, **inline, data=data, policy=policy)


def write_report(
    model: TrajectoryModel,
    path: str | os.PathLike[str],
    *,
    force: bool = False,
    seed: int = SEED,
    progress: Progress | None = None,
) -> None:
    """Write the report of a model as one .html file, whole or not at all.

    progress: told of the fits that are made again, which take most of the time.
    """
    check_name(path)
    write_text(report(model, seed, progress).html(), path, force)


def check_name(path: str | os.PathLike[str]) -> None:
    """Refuse a name that no browser would open as a page."""
    if not Path(path).name.lower().endswith(SUFFIXES):
        raise InputError(f"a report cannot be written to '{Path(path).name}': use a .html name")


def report(model: TrajectoryModel, seed: int = SEED, progress: Progress | None = None) -> Page:
    """The page about a model. The same model and seed give the same page."""
    shown = sampled(model, seed)
    quality = model.quality(progress)
    judged = [*worth_verdicts(model, quality), *verdicts(model, shown.people)]
    drawn_from = page_sampler(model, seed)
    values = {
        "kind": "report",
        "figures": _figures(model, judged, quality),
        "people": len(shown.people),
        "summary": summary(judged),
        "verdicts": judged,
        "worth": worth_tables(model, quality),
        **sections.guarantee(model),
        "budget": sections.budget(model.certificate),
        **sections.settings(model),
        "draw": sampler_words(model, drawn_from),
    }
    return page("report.html", model, shown, values, {"sampler": drawn_from}, quality=quality)


def page(
    template: str,
    model: TrajectoryModel,
    shown: Sampled,
    values: dict[str, Any],
    data: dict[str, Any] | None = None,
    real: Floats | None = None,
    real_shares: dict[str, Floats] | None = None,
    quality: Quality | None = None,
) -> Page:
    """A page with pictures of sampled people, and of real ones where their bands are given, and
    the shares of their categories."""
    drawn = panels(model, shown, real, quality)
    columns = [column.name for column in shown.columns]
    common = {
        "certificate": model.certificate,
        "names": listed_names(columns),
        "time_name": model.time_name,
        "panels": drawn,
        "more_features": len(shown.numbers) - len(drawn),
        "shares": share_panels(model, shown, real_shares),
        "gaps": bool(shown.missing),
        "ways": ways(shown, model.time_name, model.datetime),
        "compared": real is not None,
        "doubted": quality is not None,
        "box": BOX,
    }
    drawn_from = {**page_data(model, shown), "backdrop": backdrop(shown), "panel": BOX}
    drawn_from |= data or {}
    return Page(template, {**common, **values}, drawn_from)


def listed_names(features: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    names = [name if len(name) <= 40 else f"{name[:39]}…" for name in features[:3]]
    if len(features) > 3:
        names[2:] = [f"{len(features) - 2} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _figures(
    model: TrajectoryModel, judged: list[Verdict], quality: Quality | None
) -> list[tuple[str, str]]:
    """The few numbers that a decision begins with, each with what it is."""
    certificate = model.certificate
    grades = [verdict.grade for verdict in judged if verdict.grade != "for information"]
    promise = (up(certificate.epsilon), "Epsilon, less is safer")
    figures = [
        promise if certificate.private else ("none", "Guarantee"),
        (percent_up(certificate.chance_right), "Best attacker is right, at most"),
    ]
    if quality is not None and quality.at_times:
        figures.append((f"≈ {in_people(quality.worth)}", "Worth of positions, in people per time"))
    return [*figures, (f"{grades.count('good')} of {len(grades)}", "Checks that are good")]


def as_script_data(data: dict[str, Any]) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _policy(style: str, script: str) -> str:
    """Nothing but this style, this script and pictures inside the page."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
