"""The report: one HTML page about a released model, complete in itself; and the cards by which a
notebook shows a model and what belongs to it.

It is made from the model alone, so it may go wherever the model may go. Scripts and styles are
inline and named by their hashes in the page's own security policy, which forbids everything else,
the network first of all. Sentences stand in the templates, in `assets`; values come from here.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privtraj.assess.ask import Answers
from privtraj.base.errors import InputError, short
from privtraj.base.files import cache_folder, write_text
from privtraj.base.formats import PEOPLE_DRAWN
from privtraj.columns.kinds import Category, Column, Number, of_tables
from privtraj.measures.registry import find
from privtraj.privacy.certificate import (
    BATCHES,
    PROTECTS,
    Certificate,
    chance_in_words,
    factor_in_words,
    records_in_words,
)
from privtraj.privacy.ledger import up
from privtraj.report import labels
from privtraj.report.checks import checks, headline, summary, warnings, worth_tables
from privtraj.report.history import history
from privtraj.report.maps import backdrops, ways
from privtraj.report.people import SEED, page_data, page_sampler, sampled

if TYPE_CHECKING:
    from jinja2 import Environment

    from privtraj.model.model import TrajectoryModel

Progress = Callable[[int, int], None]


# Templates and files ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Page:
    """A template, the values that stand in it, and the data that its script reads."""

    template: str
    values: dict[str, Any]
    data: dict[str, Any]
    scripts: tuple[str, ...] = ("page.js", "charts.js", "people.js", "draw.js")

    def html(self) -> str:
        """The whole file, in which only this style, this script and pictures inside are allowed."""
        style, script = asset("page.css"), "".join(map(asset, self.scripts))
        hashes = (hashlib.sha256(text.encode()).digest() for text in (style, script))
        style_hash, script_hash = (base64.b64encode(each).decode() for each in hashes)
        policy = (
            f"default-src 'none'; style-src 'sha256-{style_hash}'; script-src 'sha256-{script_hash}"
            "'; img-src data:; base-uri 'none'; form-action 'none'"
        )
        inline = {"style": style, "script": script, "policy": policy}
        return render(self.template, **self.values, **inline, data=as_script_data(self.data))

    def write(self, path: str | os.PathLike[str], force: bool = False) -> None:
        """Write it as one file, whole or not at all."""
        write_text(self.html(), path, force)


def render(template: str, **values: Any) -> str:
    """A template of `assets` with these values in it: everything is escaped, and a name that it
    does not know is an error."""
    return _environment().get_template(template).render(values)


@cache
def asset(name: str) -> str:
    """A file of `report/assets`."""
    return (files("privtraj.report") / "assets" / name).read_text("utf-8")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined

    folder, kept = cache_folder("templates"), None
    if os.environ.get("PRIVTRAJ_CACHE") != "off":  # compiled templates
        with suppress(OSError, RuntimeError):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            kept = FileSystemBytecodeCache(str(folder)) if os.access(folder, os.W_OK) else None
    environment = Environment(
        loader=PackageLoader("privtraj.report", "assets"),
        bytecode_cache=kept,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    words = [short, up, chance_in_words, factor_in_words]
    written = (labels.percent, labels.percent_up, sentence, *words)
    environment.filters |= {function.__name__: function for function in written}
    return environment


def sentence(text: str) -> str:
    """With a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


def as_script_data(data: dict[str, Any]) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


# The report ------------------------------------------------------------------------------------


def write_report(
    model: TrajectoryModel,
    path: str | os.PathLike[str],
    *,
    force: bool = False,
    seed: int = SEED,
    title: str = "",
    progress: Progress | None = None,
) -> None:
    """Write the report of a model as one .html file, whole or not at all.

    title: of the page, if not the declared one.
    progress: told of the fits that are made again, which take most of the time.
    """
    if not Path(path).name.lower().endswith((".html", ".htm")):
        raise InputError(f"a report cannot be written to '{Path(path).name}': use a .html name")
    report(model, seed, title, progress).write(path, force)


def report(
    model: TrajectoryModel, seed: int = SEED, title: str = "", progress: Progress | None = None
) -> Page:
    """The page about a model. The same model and seed give the same page."""
    shown, asked = sampled(model, seed), Answers(model)
    quality = model.quality(progress)
    made, certificate = checks(model, shown.people, quality), model.certificate
    promise = (up(certificate.epsilon), "Epsilon, less is safer")
    figures = [
        promise if certificate.private else ("none", "Guarantee"),
        (labels.percent_up(certificate.chance_right), "Best attacker is right, at most"),
    ]
    figures += headline(made, quality)
    sampler = page_sampler(model, seed)
    first, last = labels.time_labels(model.knots[[0, -1]], model.datetime)
    draw = {"people": PEOPLE_DRAWN, "first": first, "last": last, **sampler}
    draw["example"] = ", ".join(labels.time_labels(model.numeric_times, model.datetime)[:2])
    draw["count"] = labels.whole_number(sampler["curves"])
    data = page_data(model, shown, asked) | {"sampler": sampler}
    data["backdrops"] = backdrops(shown, model.domain)
    values = {
        "kind": "report",
        "title": title or certificate.declared.get("title", ""),
        "certificate": certificate,
        "names": subject(model.columns),
        "time_name": model.time_name,
        "figures": figures,
        "people": len(shown.people),
        "numbers": len(shown.numbers),
        "categories": len(data["categories"]),
        "gaps": any(data["lacking"]),
        "ways": ways(shown, model.time_name, model.datetime),
        "domain": model.domain and model.domain.kind,
        "doubted": any(data["doubt"]),
        "history": history(model),
        "summary": summary(made),
        "checks": made,
        "worth": worth_tables(model, quality, asked),
        "warnings": warnings(model),
        "facts": facts(certificate),
        "budget": budget(certificate),
        **settings(model),
        "draw": draw,
    }
    return Page("report.html", values, data)


def subject(columns: Sequence[Column]) -> str:
    """The names of three columns, or of two and how many more there are."""
    known = of_tables(columns)
    names = [labels.cut(column.name) for column in known[:3]]
    if len(known) > 3:
        names[2:] = [f"{len(known) - 2} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


# The guarantee ---------------------------------------------------------------------------------


def facts(certificate: Certificate) -> list[tuple[str, str]]:
    """What the promise in words is made of."""
    found: dict[str, str] = {}
    if certificate.private:
        found["It is about"] = f"{certificate.protected} ({certificate.adjacency})"
        found["Not protected"] = certificate.not_protected or ""
        other = next(a for a in PROTECTS if a != certificate.adjacency)
        if math.isfinite(weaker := certificate.epsilon_other_adjacency):
            found["And about"] = f"{PROTECTS[other]}, with epsilon = {up(weaker)} ({other})"
    found["A person has"] = records_in_words(certificate.public_inputs)
    found["Equivalently"] = f"{up(certificate.mu)}-Gaussian privacy" if certificate.mu else ""
    found["Noise"] = certificate.noise
    found |= {f"{name.capitalize()} (declared)": x for name, x in certificate.declared.items()}
    return [(name, text) for name, text in found.items() if text]


def budget(certificate: Certificate) -> list[dict[str, Any]]:
    """Where epsilon went at the certificate's delta, in the order of payment, and what is left.

    start, share: of the whole bar.
    """
    spent = [max(added, 0.0) for added in certificate.spending()]
    rest = max(certificate.target_epsilon - certificate.epsilon, 0.0)
    whole = sum(spent) + rest
    if not spent or whole <= 0:
        return []
    order = sorted(range(len(spent)), key=lambda k: -spent[k])
    names = {"noise_multiplier": "multiplier", "noise_epsilon": "epsilon", "rate": "sampling rate"}
    lines = []
    for k, (entry, epsilon) in enumerate(zip(certificate.ledger, spent, strict=True)):
        numbers = [f"{name} {entry[key]:.3g}" for key, name in names.items() if key in entry]
        if "branches" in entry:
            how = "everybody is in one of them, and the dearest counts"
        else:
            times = f"{entry['times']} releases, each with " if entry["times"] > 1 else ""
            how = times + ", ".join([f"{entry['mechanism']} noise", *numbers])
        lines.append((entry["what"], how, epsilon, f"part-{order.index(k) % 5 + 1}"))
    if rest / whole >= 5e-4:
        lines.append(("not spent", "", rest, "rest"))
    starts = accumulate((epsilon / whole for _, _, epsilon, _ in lines), initial=0.0)
    return [
        {"what": what, "how": how, "epsilon": epsilon, "shade": shade, "start": start,
         "share": epsilon / whole}
        for (what, how, epsilon, shade), start in zip(lines, starts, strict=False)
    ]  # fmt: skip


# Settings --------------------------------------------------------------------------------------


def settings(model: TrajectoryModel) -> dict[str, Any]:
    """Public inputs, settings, versions."""
    certificate = model.certificate
    sha256 = certificate.model_sha256 or model.sha256
    moments = labels.time_labels(model.numeric_times, model.datetime)
    times = ", ".join(moments)
    if len(moments) > 16:
        times = f"{len(moments)} times from {moments[0]} to {moments[-1]}"
    inputs, elsewhere = certificate.public_inputs.items(), ("bounds", "bin times", BATCHES)
    public = [(name, _text(value)) for name, value in inputs if name not in elsewhere]
    knots, particles, _ = model.particles.shape
    d = sum(not column.of for column in model.columns)
    method = _text(model.settings.get("measure", ""))
    keeps = f"{model.reference.assumed} is an assumption"
    if "persistence" in model.diagnostics and model.reference.forgets:
        keeps = "how fast they forget was measured on people with several records"
    clipped = []
    if "noise_over_bandwidth" in model.diagnostics:  # gradients, which load JAX
        from privtraj.measures.base import CLIPPED

        share = labels.percent(CLIPPED)
        clipped = [("clipping", f"{share} of the model's own people are shortened, by design")]
    made = [
        ("method", method if find(method) is None else f"private {method}"),
        *((key.replace("_", " "), _text(value)) for key, value in model.settings.items()
          if key != "measure" and value not in (None, 0, "")),
        *certificate.found.items(),
        ("model size", f"{knots} knots in time, {particles} particles, {d} feature{'s' * (d > 1)}"),
        ("how people move", f"by '{model.reference.kind}'; {keeps}"),
        ("diffusivity", f"{model.diffusivity:.3g} per time range, in squared shares of the box"),
        ("bandwidth", f"{model.bandwidth.min():.3g} to {model.bandwidth.max():.3g} of the box"),
        ("noise", certificate.noise),
        *clipped,
        ("privtraj", certificate.version),
        ("model sha256", sha256),
    ]  # fmt: skip
    return {
        "declared": declared(model.columns),
        "public_inputs": [("Times of interest", times), *public],
        "made": made,
        "sha256": sha256,
    }


def declared(columns: Sequence[Column]) -> list[dict[str, Any]]:
    """All columns of the table: what somebody said of them, which is public.

    domain: in words.  listed: of a category, all values.  more: whether fixed, missing, other.
    """
    made = []
    for column in columns:
        if column.of:
            continue
        more = ["never changes"] * column.fixed + ["may be missing"] * column.missing
        values: list[str] = []
        if isinstance(column, Category):
            values = [labels.text_label(column, k) for k in range(len(column.values))]
            domain = f"{len(values)} values"
            if column.other is not None:
                more.append(f"any other value counts as '{labels.cut(column.other)}'")
        else:
            assert isinstance(column, Number)
            domain = labels.number_range(column)
        said = {"domain": domain, "listed": values, "more": ", ".join(more)}
        made.append({"name": column.name, "kind": column.kind, **said})
    return made


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return labels.whole_number(value) if value.is_integer() else f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value[:20])) + ", ..." * (len(value) > 20)
    return str(value)
