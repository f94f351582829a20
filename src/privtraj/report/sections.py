"""What the written parts of a page say of a model: guarantee, dial, budget, settings.

Plain values; the sentences around them stand in the templates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privtraj.base.space import as_user_times
from privtraj.columns.kinds import Category, Column, Date, Number
from privtraj.privacy import meaning
from privtraj.privacy.certificate import PROTECTS, Certificate
from privtraj.privacy.ledger import up
from privtraj.privacy.statements import MOST_RECORDS, records_in_words
from privtraj.report.levels import cut, text_label
from privtraj.report.templates import whole_number
from privtraj.report.ticks import time_labels

if TYPE_CHECKING:
    from privtraj.model.model import TrajectoryModel

_METHODS = ("counts", "gradients", "marginals")
_COLOURS = 5
_MOST_TIMES = 16  # listed one by one


# The guarantee ---------------------------------------------------------------------------------


def warnings(model: TrajectoryModel) -> list[str]:
    """Those of the certificate, and what the released number of people tells of its delta."""
    certificate = model.certificate
    counted = [value for value in model.diagnostics.get("people_per_time") or [] if value]
    if not (certificate.private and counted) or certificate.counts_are_public:
        return certificate.warnings
    several = certificate.public_inputs.get(MOST_RECORDS) != 1
    budget = certificate.epsilon, certificate.delta
    return meaning.warnings(*budget, sum(counted), at_most=several)


def guarantee(model: TrajectoryModel) -> dict[str, Any]:
    """What the promise in words, the facts under it and the dial beside it are made of."""
    certificate = model.certificate
    return {
        "warnings": warnings(model),
        "in_words": certificate.in_words,
        "factor": meaning.factor(certificate.epsilon),
        "failure": meaning.chance(certificate.delta) if certificate.delta else "",
        "facts": _facts(certificate),
        "dial": _dial(certificate.chance_right),
    }


def _facts(certificate: Certificate) -> list[tuple[str, str]]:
    other = next(a for a in PROTECTS if a != certificate.adjacency)
    weaker = certificate.epsilon_other_adjacency
    facts = []
    if certificate.private:
        facts.append(("It is about", f"{certificate.protected} ({certificate.adjacency})"))
        facts.append(("Not protected", certificate.not_protected or ""))
    if certificate.private and math.isfinite(weaker):
        also = f"{PROTECTS[other]}, with epsilon = {up(weaker)} ({other})"
        facts.append(("And about", also))
    facts += [
        ("A person has", records_in_words(certificate.public_inputs)),
        ("Equivalently", f"{up(certificate.mu)}-Gaussian privacy" if certificate.mu else ""),
        ("Noise", certificate.noise),
    ]
    return [(name, text) for name, text in facts if text]


def _dial(chance: float) -> dict[str, Any]:
    """A gauge from a coin toss, 50 %, to certainty, 100 %; a turn is 0 there and 1 here."""
    turn = 2 * chance - 1
    corners = (_on_circle(turn - 0.5, 7), _on_circle(turn, 88), _on_circle(turn + 0.5, 7))
    return {
        "chance": chance,
        "arcs": [_arc(k / 4 + 0.004, (k + 1) / 4 - 0.004) for k in range(4)],
        "needle": " ".join(f"{x:.1f},{y:.1f}" for x, y in corners),
    }


def _on_circle(turn: float, radius: float) -> tuple[float, float]:
    angle = math.pi * (1 - turn)
    return 160 + radius * math.cos(angle), 160 - radius * math.sin(angle)


def _arc(start: float, end: float) -> str:
    (a, b), (c, d) = _on_circle(start, 118), _on_circle(end, 118)
    return f"M{a:.1f} {b:.1f}A118 118 0 0 1 {c:.1f} {d:.1f}"


# The budget ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """What one entry of the ledger added to epsilon; start and share: of the whole bar."""

    what: str
    how: str
    epsilon: float
    start: float
    share: float
    shade: str


def budget(certificate: Certificate) -> list[Part]:
    """Where epsilon went at the certificate's delta, in the order of payment, and what is left."""
    spent = [max(added, 0.0) for added in certificate.spending()]
    rest = max(certificate.target_epsilon - certificate.epsilon, 0.0)
    whole = sum(spent) + rest
    if not spent or whole <= 0:
        return []
    order = sorted(range(len(spent)), key=lambda k: -spent[k])
    lines = [
        (entry["what"], _how(entry), epsilon, f"part-{order.index(k) % _COLOURS + 1}")
        for k, (entry, epsilon) in enumerate(zip(certificate.ledger, spent, strict=True))
    ]
    if rest / whole >= 5e-4:
        lines.append(("not spent", "", rest, "rest"))
    parts, start = [], 0.0
    for what, how, epsilon, shade in lines:
        parts.append(Part(what, how, epsilon, start, epsilon / whole, shade))
        start += epsilon / whole
    return parts


def _how(entry: dict[str, Any]) -> str:
    if "branches" in entry:
        return "everybody is in one of them, and the dearest counts"
    names = {"noise_multiplier": "multiplier", "noise_epsilon": "epsilon", "rate": "sampling rate"}
    told = [f"{name} {entry[key]:.3g}" for key, name in names.items() if key in entry]
    times = f"{entry['times']} releases, each with " if entry["times"] > 1 else ""
    return times + ", ".join([f"{entry['mechanism']} noise", *told])


# Settings --------------------------------------------------------------------------------------


def settings(model: TrajectoryModel) -> dict[str, Any]:
    """Public inputs, settings, versions."""
    labels = time_labels(model.numeric_times, model.datetime)
    times = ", ".join(labels)
    if len(labels) > _MOST_TIMES:
        times = f"{len(labels)} times from {labels[0]} to {labels[-1]}"
    public = {name: _said(value) for name, value in model.certificate.public_inputs.items()}
    elsewhere = ("bounds", "bin times")
    boxes = zip(model.features, model.bounds.tolist(), strict=True)
    plain = all(type(one) is Number and not (one.missing or one.fixed) for one in model.columns)
    return {
        "bounds": [(name, *box) for name, box in boxes] if plain else [],
        "declared": [] if plain else declared(model.columns),
        "fitted_times": times,
        "public_inputs": [(name, said) for name, said in public.items() if name not in elsewhere],
        "made": _made(model),
        "sha256": sha256(model),
    }


@dataclass(frozen=True)
class Declared:
    """A column as it was declared public.

    domain: in words.  values: of a category, all of them.  more: whether fixed, missing, other.
    """

    name: str
    kind: str
    domain: str
    values: list[str]
    more: str


def declared(columns: Sequence[Column]) -> list[Declared]:
    """All columns of the table: what somebody said of them, which is public."""
    found = []
    for column in columns:
        if column.of:
            continue
        said = {"never changes": column.fixed, "may be missing": column.missing}
        more = [words for words, so in said.items() if so]
        values: list[str] = []
        if isinstance(column, Category):
            values = [text_label(column, k) for k in range(len(column.values))]
            domain = f"{len(values)} values"
            if column.other is not None:
                more.append(f"any other value counts as '{cut(column.other)}'")
        else:
            domain = number_range(column)
        kind = column.kind
        found.append(Declared(column.name, kind, domain, values, ", ".join(more)))
    return found


def number_range(column: Number) -> str:
    """Low and high, as people write them."""
    if not isinstance(column, Date):
        return f"{column.low:g} to {column.high:g}"
    days = as_user_times([column.low, column.high], True).astype("datetime64[D]")
    return f"{days[0]} to {days[1]}"


def sha256(model: TrajectoryModel) -> str:
    """As the certificate says, or else of the model as it is."""
    return model.certificate.model_sha256 or model.sha256


def _made(model: TrajectoryModel) -> list[tuple[str, str]]:
    certificate = model.certificate
    k, m, _ = model.particles.shape
    d = sum(not column.of for column in model.columns)
    method = _said(model.settings.get("measure", ""))
    return [
        ("method", f"private {method}" if method in _METHODS else method),
        *((key.replace("_", " "), _said(value)) for key, value in model.settings.items()
          if key != "measure" and value not in (None, 0, "")),
        *certificate.found.items(),
        ("model size", f"{k} knots in time, {m} particles, {d} feature{'s' * (d > 1)}"),
        ("how people move", f"by '{model.reference.kind}'; {_persisting(model)}"),
        ("diffusivity", f"{model.diffusivity:.3g} per time range, in squared shares of the box"),
        ("bandwidth", f"{model.bandwidth.min():.3g} to {model.bandwidth.max():.3g} of the box"),
        ("noise", certificate.noise),
        ("privtraj", certificate.version),
        ("model sha256", sha256(model)),
    ]  # fmt: skip


def _persisting(model: TrajectoryModel) -> str:
    """Where it comes from that people keep, or forget, their place among the others."""
    if "persistence" in model.diagnostics:
        return "how fast they forget was measured on people with several records"
    return "that they keep their place among the others, or forget it, is an assumption"


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return whole_number(value) if value.is_integer() else f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(_said, value[:20])) + ", ..." * (len(value) > 20)
    return str(value)
