"""The written parts of a page: guarantee, dial, budget, verdicts, settings, how to cite.

They are plain HTML and SVG, readable without scripts. All text that a user chose is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from privtraj.privacy.certificate import PROTECTS, Certificate
from privtraj.privacy.ledger import up
from privtraj.report.style import short
from privtraj.report.ticks import time_label
from privtraj.report.verdicts import Verdict, percent, round_number

if TYPE_CHECKING:
    from privtraj.model import TrajectoryModel

CLASSES = {"good": "good", "look closer": "fair", "poor": "poor", "for information": ""}
_ICONS = {
    "good": "M3 9l4 4 7-9",
    "look closer": "M8 3v6M8 13v.01",
    "poor": "M4 4l8 8M12 4l-8 8",
    "for information": "M8 8v5M8 4v.01",
}
_COLOURS = 5


# The guarantee ---------------------------------------------------------------------------------


def guarantee(certificate: Certificate) -> str:
    """The promise in words, with the dial beside it."""
    words = _not_private(certificate) if not certificate.private else _promise(certificate)
    return (
        f"<div class='promise'><div>{words}{_facts(certificate)}</div>"
        f"<div class='card'>{dial(certificate)}</div></div>{_rates(certificate)}"
    )


def _promise(certificate: Certificate) -> str:
    coming = certificate.adjacency == "add-remove"
    who = (
        "Any one person could be taken out of the data, or put in"
        if coming
        else "Any one person's records could be swapped for others"
    )
    act = "Adding or removing one person" if coming else "Changing one person's records"
    factor = _factor(certificate.epsilon)
    plus = f", plus a chance of {_one_in(certificate.delta)}" if certificate.delta else ""
    return (
        f"<p class='big'>{who}, and this model would look almost the same.</p>"
        f"<p>{act} changes the probability of anything that anybody could see in the model by a "
        f"factor of at most {factor}{plus}. This is differential privacy with "
        f"<b>epsilon = {up(certificate.epsilon)}</b> and "
        f"<b class='keep'>delta = {short(certificate.delta)}</b>. It holds against any "
        "attacker, whatever they know and compute, now or later.</p>"
        "<p>It does not hide what is true of people in general, and it takes the public inputs "
        "below as known to everybody.</p>"
    )


def _not_private(certificate: Certificate) -> str:
    return (
        f"<p class='big'>There is no guarantee: {certificate.caveat}.</p>"
        f"<p>With private noise the same fit would have epsilon = {up(certificate.epsilon)} and "
        f"delta = {short(certificate.delta)}. As it is, nobody in the data is protected.</p>"
    )


def _facts(certificate: Certificate) -> str:
    other = next(a for a in PROTECTS if a != certificate.adjacency)
    weaker = certificate.epsilon_other_adjacency
    same = f"{PROTECTS[other]}, with epsilon = {up(weaker)}" if math.isfinite(weaker) else ""
    most = certificate.public_inputs.get("most records of one person")
    together = certificate.public_inputs.get("records of one person may share a bin")
    protected = [
        ("Protected", f"{PROTECTS[certificate.adjacency]} ({certificate.adjacency})"),
        ("Also protected", f"{same} ({other})" if same else ""),
    ]
    facts = [
        *(protected if certificate.private else []),
        ("A person has", _records(most, together)),
        ("Equivalently", f"{up(certificate.mu)}-Gaussian privacy" if certificate.mu else ""),
        ("Noise", certificate.noise),
    ]
    rows = "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in facts if text)
    return f"<dl class='facts'>{rows}</dl>"


def _records(most: Any, together: Any) -> str:
    if not isinstance(most, int):
        return ""
    if most == 1:
        return "at most one record"
    return f"at most {most} records{'' if together else ', each in a time bin of its own'}"


def _factor(epsilon: float) -> str:
    return f"{math.exp(epsilon):.3g}" if epsilon < 20 else f"e to the power of {epsilon:.3g}"


def _one_in(delta: float) -> str:
    return f"1 in {round_number(1 / delta)}" if delta >= 1e-9 else short(delta)


def chance_right(certificate: Certificate) -> float:
    """The most that any attacker is right in when it is even whether the person is in the data:
    (1 + advantage) / 2, and 1 where nothing protects."""
    if not certificate.private:
        return 1.0
    return (1 + min(float(certificate.attacker["advantage"]), 1.0)) / 2


def risk(certificate: Certificate) -> str:
    """`chance_right` in percent, never less than it is."""
    return _rounded_up(chance_right(certificate))


def dial(certificate: Certificate) -> str:
    """A gauge from a coin toss, 50 %, to certainty, 100 %."""
    chance = chance_right(certificate)
    said = risk(certificate)
    arcs = "".join(
        f'<path class="arc dial-{k + 1}" d="{_arc(k / 4 + 0.004, (k + 1) / 4 - 0.004)}"/>'
        for k in range(4)
    )
    tip = _on_circle(2 * chance - 1, 88)
    sides = [_on_circle(2 * chance - 1 + turn, 7) for turn in (-0.5, 0.5)]
    needle = " ".join(f"{x:.1f},{y:.1f}" for x, y in (sides[0], tip, sides[1]))
    question = (
        "a given person is in the data"
        if certificate.adjacency == "add-remove"
        else "a person's records say one thing or another"
    )
    text = (
        f"The best attacker is right about whether {question} in at most {said} of cases, if both "
        "are equally likely at first; tossing a coin is right in 50\N{NO-BREAK SPACE}%."
    )
    if not certificate.private:
        text = "Nothing limits what an attacker may find out: the model is not private."
    return (
        f'<figure class="dial"><svg viewBox="0 0 320 222" role="img" aria-label="Dial of attack '
        f'risk, from 50 % to 100 %. {text}">{arcs}<polygon class="needle" points="{needle}"/>'
        '<circle class="needle" cx="160" cy="160" r="9"/>'
        '<text class="soft" x="40" y="184" text-anchor="middle" font-size="13">50 %</text>'
        '<text class="soft" x="40" y="200" text-anchor="middle" font-size="13">coin toss</text>'
        '<text class="soft" x="280" y="184" text-anchor="middle" font-size="13">100 %</text>'
        '<text class="soft" x="280" y="200" text-anchor="middle" font-size="13">certainty</text>'
        f'<text class="number" x="160" y="213" text-anchor="middle">{said}</text></svg>'
        f"<figcaption>{text}</figcaption></figure>"
    )


def _on_circle(share: float, radius: float) -> tuple[float, float]:
    angle = math.pi * (1 - share)
    return 160 + radius * math.cos(angle), 160 - radius * math.sin(angle)


def _arc(start: float, end: float) -> str:
    (a, b), (c, d) = _on_circle(start, 118), _on_circle(end, 118)
    return f"M{a:.1f} {b:.1f}A118 118 0 0 1 {c:.1f} {d:.1f}"


def _rates(certificate: Certificate) -> str:
    if not certificate.private:
        return ""
    rows = "".join(
        f"<tr><th scope='row'>{percent(float(alarm))}</th><td>{meter(rate, float(alarm))}</td>"
        f"<td class='n'>{_rounded_up(rate)}</td></tr>"
        for alarm, rate in certificate.attacker["true_positive_rate"].items()
    )
    found = "Members found" if certificate.adjacency == "add-remove" else "Found out"
    return (
        "<div class='scroll'><table class='rates'><caption>What the best attacker can find, by the "
        "share of false alarms they accept. The thin mark is what guessing finds.</caption>"
        "<thead><tr><th scope='col'>False alarms</th><th scope='col' class='wide'>"
        "<span class='unseen'>Picture</span></th><th scope='col' class='n'>"
        f"{found}, at most</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )


def meter(value: float, guess: float) -> str:
    full = 100 * min(value, 1)
    return (
        '<svg class="meter" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="back" width="100" height="10"/>'
        f'<rect class="fill" width="{full:.2f}" height="10"/>'
        f'<rect class="guess" x="{100 * guess:.2f}" width="0.8" height="10"/></svg>'
    )


def _rounded_up(share: float) -> str:
    """Percent, never less than it is."""
    return f"{min(math.ceil(share * 1000 - 1e-9) / 10, 100):g}\N{NO-BREAK SPACE}%"


# The budget ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """What one entry of the ledger added to epsilon."""

    what: str
    how: str
    epsilon: float


def spent(certificate: Certificate) -> list[Part]:
    """What each release added to epsilon at the certificate's delta, in the order of payment."""
    return [
        Part(entry["what"], _how(entry), max(added, 0.0))
        for entry, added in zip(certificate.ledger, certificate.spending(), strict=True)
    ]


def _how(entry: dict[str, Any]) -> str:
    told = [f"{entry['mechanism']} noise"]
    if "noise_multiplier" in entry:
        told.append(f"multiplier {entry['noise_multiplier']:.3g}")
    if "noise_epsilon" in entry:
        told.append(f"epsilon {entry['noise_epsilon']:.3g}")
    if "rate" in entry:
        told.append(f"sampling rate {entry['rate']:.3g}")
    times = f"{entry['times']} releases, each with " if entry["times"] > 1 else ""
    return times + ", ".join(told)


def budget(certificate: Certificate) -> str:
    """A bar of where epsilon went, and the same as a table."""
    parts = spent(certificate)
    rest = max(certificate.target_epsilon - certificate.epsilon, 0.0)
    whole = sum(part.epsilon for part in parts) + rest
    if not parts or whole <= 0:
        return "<p>Nothing was paid for.</p>"
    if rest / whole < 5e-4:
        rest = 0.0
    ranks = {id(p): k for k, p in enumerate(sorted(parts, key=lambda p: -p.epsilon))}
    shades = [f"part-{ranks[id(p)] % _COLOURS + 1}" for p in parts]
    lines = [(p.what, p.how, p.epsilon, shade) for p, shade in zip(parts, shades, strict=True)]
    if rest:
        lines.append(("not spent", "", rest, "rest"))
    bars, at = [], 0.0
    for _, _, epsilon, shade in lines:
        width = 1000 * epsilon / whole
        bars.append(
            f'<rect class="{shade}" x="{at:.2f}" width="{max(width - 2, 1):.2f}" height="50"/>'
        )
        at += width
    alt = "; ".join(f"{what} {percent(e / whole)}" for what, _, e, _ in lines)
    rows = "".join(
        f"<tr><th scope='row'><svg class='swatch' viewBox='0 0 1 1' aria-hidden='true'>"
        f"<rect class='{shade}' width='1' height='1'/></svg>{escape(what)}"
        f"<span class='how'>{escape(how)}</span></th>"
        f"<td class='n'>{epsilon:.3g}</td>"
        f"<td class='n'>{percent(epsilon / whole)}</td></tr>"
        for what, how, epsilon, shade in lines
    )
    return (
        f'<svg class="spent" viewBox="0 0 1000 50" preserveAspectRatio="none" role="img" '
        f'aria-label="Where the budget went: {escape(alt)}">{"".join(bars)}</svg>'
        "<div class='scroll'><table><thead><tr><th scope='col'>Released</th>"
        "<th scope='col' class='n'>Epsilon</th><th scope='col' class='n'>Share</th></tr>"
        f"</thead><tbody>{rows}</tbody></table></div>"
    )


# Verdicts --------------------------------------------------------------------------------------


def verdict_cards(found: Iterable[Verdict]) -> str:
    """A card for each."""
    cards = "".join(
        f"<li class='card {CLASSES[v.grade]}'><span class='grade'>{icon(v.grade)}{v.grade}</span>"
        f"<h3>{escape(v.name)}</h3><span class='value'>{escape(v.value)}</span>"
        f"<p>{escape(v.sentence)}</p></li>"
        for v in found
    )
    return f"<ul class='verdicts'>{cards}</ul>"


def icon(grade: str) -> str:
    return f'<svg viewBox="0 0 16 16" aria-hidden="true"><path d="{_ICONS[grade]}"/></svg>'


# Settings --------------------------------------------------------------------------------------


def settings(model: TrajectoryModel) -> str:
    """Public inputs, settings, versions."""
    known = _bounds(model) + _more_public(model.certificate)
    return (
        f"<div class='columns'><div><h3>Taken as public</h3>{_times(model)}{known}</div>"
        f"<div><h3>How it was made</h3>{table(_made(model))}</div></div>"
    )


def _bounds(model: TrajectoryModel) -> str:
    rows = "".join(
        f"<tr><th scope='row'>{escape(name)}</th><td class='n'>{low:g}</td>"
        f"<td class='n'>{high:g}</td></tr>"
        for name, (low, high) in zip(model.features, model.bounds, strict=True)
    )
    box = (
        "<div class='scroll'><table><thead><tr><th scope='col'>Feature</th>"
        "<th scope='col' class='n'>from</th>"
        f"<th scope='col' class='n'>to</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )
    if len(model.features) <= 12:
        return box
    return f"<details><summary>Bounds of {len(model.features)} features</summary>{box}</details>"


def _times(model: TrajectoryModel) -> str:
    times = model.numeric_times
    labels = [time_label(t, times[-1] - times[0], model.datetime) for t in times]
    listed = ", ".join(labels)
    if len(labels) > 16:
        listed = f"{len(labels)} times from {labels[0]} to {labels[-1]}"
    return table([(f"Fitted times of {model.time_name}", listed)])


def _more_public(certificate: Certificate) -> str:
    shown = {"bounds", "bin times"}
    rows = [(key, _said(v)) for key, v in certificate.public_inputs.items() if key not in shown]
    return table(rows)


def _made(model: TrajectoryModel) -> list[tuple[str, str]]:
    certificate = model.certificate
    t, m, d = model.particles.shape
    return [
        ("method", {"counts": "private counts", "gradients": "private gradients"}.get(
            str(model.settings.get("measure")), _said(model.settings.get("measure", "")))),
        *((key.replace("_", " "), _said(value)) for key, value in model.settings.items()
          if key != "measure" and value not in (None, 0, "")),
        ("model size", f"{t} times, {m} particles, {d} feature{'s' * (d > 1)}"),
        ("diffusivity", f"{model.diffusivity:.3g} per time range, in squared shares of the box"),
        ("bandwidth", f"{model.bandwidth.min():.3g} to {model.bandwidth.max():.3g} of the box"),
        ("noise", certificate.noise),
        ("privtraj", certificate.version),
        ("model sha256", certificate.model_sha256 or model.sha256),
    ]  # fmt: skip


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(_said, value[:20])) + ", ..." * (len(value) > 20)
    return str(value)


def table(rows: Sequence[tuple[str, str]]) -> str:
    """Names and values."""
    body = "".join(
        f"<tr><th scope='row'>{escape(name[:1].upper() + name[1:])}</th>"
        f"<td{' class=anywhere' * name.endswith('sha256')}>{escape(value)}</td></tr>"
        for name, value in rows
    )
    return f"<div class='scroll'><table><tbody>{body}</tbody></table></div>" if rows else ""


def cite(model: TrajectoryModel) -> str:
    """For a paper that uses the model."""
    sha = model.certificate.model_sha256 or model.sha256
    entry = (
        "@software{privtraj,\n"
        "  title   = {privtraj: private continuous-time synthetic trajectories from snapshots},\n"
        "  year    = {2026},\n"
        f"  version = {{{model.certificate.version}}},\n"
        f"  note    = {{model sha256 {sha[:16]}}},\n"
        "}"
    )
    return (
        f"<pre>{escape(entry)}</pre><p>The method grew out of A. Gu, E. Chien and K. Greenewald, "
        "<i>Private Continuous-Time Synthetic Trajectory Generation via Mean-Field Langevin "
        "Dynamics</i>. Say epsilon, delta and who is protected wherever you show results.</p>"
    )
