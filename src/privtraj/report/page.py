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
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from privtraj.errors import InputError
from privtraj.files import write_text
from privtraj.privacy.ledger import up
from privtraj.report import sections
from privtraj.report.page_data import SEED, page_data, sampled
from privtraj.report.panels import PANEL, panels
from privtraj.report.style import short
from privtraj.report.verdicts import Verdict, round_number, summary, verdicts

if TYPE_CHECKING:
    from privtraj.model import TrajectoryModel

SUFFIXES = (".html", ".htm")


@dataclass(frozen=True)
class Page:
    """What a page is put together from. sections: (id, heading, words in the menu, contents)."""

    title: str
    kicker: str
    heading: str
    lead: str
    sections: list[tuple[str, str, str, str]]
    data: dict[str, Any]
    footer: str
    figures: list[tuple[str, str]] = field(default_factory=list)  # number and what it is
    banner: str = ""

    def html(self) -> str:
        """The whole file."""
        style, script = asset("page.css"), asset("page.js")
        return Template(asset("page.html")).substitute(
            title=escape(self.title),
            policy=_policy(style, script),
            style=style,
            banner=self.banner,
            header=self._header(),
            main="\n".join(_section(*each) for each in self.sections),
            footer=f"<p>{self.footer}</p>",
            data=as_script_data(self.data),
            script=script,
        )

    def _header(self) -> str:
        links = "".join(f"<li><a href='#{i}'>{menu}</a></li>" for i, _, menu, _ in self.sections)
        return (
            f"<div class='kicker'><span>{self.kicker}</span>"
            "<button type='button' id='theme' hidden>Dark theme</button></div>"
            f"<h1>{self.heading}</h1><p class='lead'>{self.lead}</p>{self._figures()}"
            f"<nav aria-label='On this page'><ul>{links}</ul></nav>"
        )

    def _figures(self) -> str:
        items = "".join(
            f"<div><dt>{escape(what)}</dt><dd>{escape(number)}</dd></div>"
            for number, what in self.figures
        )
        return f"<dl class='figures'>{items}</dl>" if items else ""


def write_report(
    model: TrajectoryModel, path: str | os.PathLike[str], *, force: bool = False, seed: int = SEED
) -> None:
    """Write the report of a model as one .html file, whole or not at all."""
    check_name(path)
    write_page(report(model, seed), path, force)


def write_page(page: Page, path: str | os.PathLike[str], force: bool) -> None:
    """Write it, whole or not at all."""
    check_name(path)
    write_text(page.html(), path, force)


def check_name(path: str | os.PathLike[str]) -> None:
    """Refuse a name that no browser would open as a page."""
    if not Path(path).name.lower().endswith(SUFFIXES):
        raise InputError(f"a report cannot be written to '{Path(path).name}': use a .html name")


def report(model: TrajectoryModel, seed: int = SEED) -> Page:
    """The page about a model. The same model and seed give the same page."""
    shown = sampled(model, seed)
    found = verdicts(model, shown.people)
    certificate = model.certificate
    names = listed_names(model.features)
    body = [
        ("guarantee", "What is promised", "Guarantee", sections.guarantee(certificate)),
        ("people", "The synthetic population", "Population", _people(len(shown.people))),
        ("features", "Each feature over time", "Features", _features(panels(model, shown))),
        ("budget", "Where the budget went", "Budget", _budget(model)),
        ("checks", "How well it went", "Checks",
         f"<p class='lead'>{summary(found)} Everything here follows from the released model; none "
         f"of it was compared with the raw data.</p>{sections.verdict_cards(found)}"),
        ("settings", "Settings", "Settings", sections.settings(model)),
        ("cite", "How to cite", "Cite", sections.cite(model)),
    ]  # fmt: skip
    return Page(
        title=f"privtraj report: {names} over {model.time_name}",
        kicker="<span><b>privtraj</b> report</span>",
        heading=f"Synthetic people: {escape(names)} over {escape(model.time_name)}",
        lead=_lead(model),
        sections=body,
        data={**page_data(model, shown), "panel": PANEL},
        footer="What this report is made from: only the released model, by sampling from it with a "
        "fixed seed. No record of a real person was read to make it, and it costs no privacy. The "
        "page is one file and asks nothing of any network.",
        figures=_figures(model, found),
        banner="" if certificate.private else _alarm(model),
    )


def listed_names(features: tuple[str, ...]) -> str:
    """The first few names, and how many more there are."""
    names = [name if len(name) <= 40 else f"{name[:39]}…" for name in features[:3]]
    if len(features) > 3:
        names[2:] = [f"{len(features) - 2} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _lead(model: TrajectoryModel) -> str:
    certificate = model.certificate
    if not certificate.private:
        return f"This model is for research only: {certificate.caveat}."
    delta = f"<span class='keep'>{short(certificate.delta)}</span>"
    return (
        "These people do not exist. They were drawn from a private model of real ones, at epsilon "
        f"{up(certificate.epsilon)} and delta {delta}, and can be read at any "
        f"{escape(model.time_name)} in the range."
    )


def _figures(model: TrajectoryModel, found: list[Verdict]) -> list[tuple[str, str]]:
    """The few numbers that a decision begins with."""
    certificate = model.certificate
    worth = model.diagnostics.get("expected_worth")
    checked = [v.grade for v in found if v.grade != "for information"]
    promise = (up(certificate.epsilon), "Epsilon, less is safer")
    figures = [
        promise if certificate.private else ("none", "Guarantee"),
        (sections.risk(certificate), "Best attacker is right, at most"),
        (f"{sum(g == 'good' for g in checked)} of {len(checked)}", "Checks that are good"),
    ]
    if worth is not None:
        figures.insert(
            2, (f"≈ {round_number(max(worth, 0))}", "Worth, in people per time, cautiously")
        )
    return figures


def _alarm(model: TrajectoryModel) -> str:
    return (
        "<div class='banner' role='alert'><p><strong>NOT PRIVATE: do not release</strong>"
        f"This model protects nobody: {model.certificate.caveat}. Fit again without a seed to get "
        "one that may leave.</p></div>"
    )


def _people(count: int) -> str:
    return (
        f"<p class='lead'>{count} synthetic people, drawn from the model. Press play, move the "
        "slider, or click somebody to follow them. Pale dots are people at other times; the marks "
        f"under the slider are the fitted times.</p>{asset('explorer.html')}"
    )


def _features(drawn: str) -> str:
    return (
        "<p class='lead'>In each picture, people over time on the left, and on the right their "
        "spread at the time of the slider. Click in a picture to move the slider there.</p>"
        f"{drawn}"
    )


def _budget(model: TrajectoryModel) -> str:
    target = model.certificate.target_epsilon
    return (
        f"<p class='lead'>Of epsilon = {target:g}, what each release added, in the order in which "
        f"it was paid for, at delta = {short(model.certificate.delta)}.</p>"
        f"{sections.budget(model.certificate)}"
    )


def _section(name: str, heading: str, menu: str, body: str) -> str:
    return (
        f"<section id='{name}' aria-labelledby='{name}-title'>"
        f"<h2 id='{name}-title'>{heading}</h2>{body}</section>"
    )


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


@cache
def asset(name: str) -> str:
    """A file of `report/assets`."""
    return (files("privtraj.report") / "assets" / name).read_text("utf-8")
