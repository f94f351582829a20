"""Every privacy figure of the paper, recomputed: which accounting it came from, and what is true.

One row per figure (`claims`), epsilon at the delta of the row by each accounting (`readings`). The
verdict says which of these, to two decimals, the figure comes from, and whether the exact ones
allow it. One more row has the batches that the annealed run, whose rho is not stated, may have had
by each accounting. Nothing here is random. Some 70 seconds of one core, shared among all there are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from privtraj.plot import BLUE, GREY, INK, VERMILION, decorate
from privtraj.privacy.accounting import FINE
from reproduce import readings
from reproduce.claims import Claim, claims
from reproduce.drawing import blank, one_two_five
from reproduce.parallel import call, in_parallel
from reproduce.readings import EXACT, PARTICLES, READINGS
from reproduce.result import Options, Reproduction
from reproduce.tables import Row, markdown, texts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "table-budgets"
QUICK = ("digit 7, no warm start", "5 of 10 times, a public choice")

_EXAMPLES = ("digit 7, no warm start", "warm start, steps, digit 7")
_BATCH_READINGS = ("CLT", "Renyi", *EXACT)
_WORDS = texts(NAME)


def run(options: Options) -> Reproduction:
    """Every figure by every accounting; two figures if quick."""
    listed = [claim for claim in claims() if not options.quick or claim.what in QUICK]
    annealed = [claim for claim in listed if claim.rule == "added up"]
    tasks: list[tuple[Any, ...]] = [
        *((readings.largest_batch, claim, x) for claim in annealed for x in _BATCH_READINGS),
        *((readings.epsilon_of, claim, x) for claim in listed for x in READINGS),
    ]
    answers = iter(in_parallel(call, tasks, options.progress))
    batches = [batch_row(claim, [next(answers) for _ in _BATCH_READINGS]) for claim in annealed]
    rows = [epsilon_row(claim, [next(answers) for _ in READINGS]) for claim in listed]
    sentences = "\n".join(f"- {sentence}" for sentence in summary(listed, rows, batches))
    settings = {
        "loss grid, certified": FINE,
        "loss grid, searching a batch": readings.COARSE,
        "loss grid, per particle": readings.COARSER,
        "particles": PARTICLES,
        "dp-accounting": version("dp-accounting"),
        "assumed": _WORDS["assumed"],
    }
    text = _WORDS["text"].format(table=_table(rows), summary=sentences)
    shown = [row for claim, row in zip(listed, rows, strict=True) if not claim.wrong]
    return Reproduction(NAME, settings, [*rows, *batches], text, {NAME: _figure(shown)})


# Rows -----------------------------------------------------------------------------------------


def epsilon_row(claim: Claim, values: Iterable[float]) -> Row:
    """A figure, its value by each accounting (None where that has no answer), and the verdict."""
    by_reading = {
        reading: None if math.isnan(value) else value
        for reading, value in zip(READINGS, values, strict=True)
    }
    verdict = _verdict(claim, by_reading)
    return _row(claim, "epsilon", claim.epsilon, by_reading, verdict, claim.note)


def batch_row(claim: Claim, values: Iterable[float]) -> Row:
    """The largest batch by each accounting that the figure leaves room for."""
    by_reading = dict(zip(_BATCH_READINGS, values, strict=True))
    return _row(claim, "largest batch", None, by_reading, "", "rho is not stated")


def _row(
    claim: Claim, quantity: str, claimed: float | None, values: Row, verdict: str, note: str
) -> Row:
    return {
        "where": claim.where,
        "what": claim.what,
        "quantity": quantity,
        "settings": claim.settings,
        "delta": claim.delta,
        "claimed": claimed,
        **dict.fromkeys(READINGS),
        **values,
        "verdict": verdict,
        "note": note,
    }


def _verdict(claim: Claim, values: dict[str, float | None]) -> str:
    """Which accounting gives the claimed figure, and whether the exact ones allow it."""
    same = [name for name in READINGS if _reads_as(values[name], claim.epsilon)]
    origin = f"from {', '.join(same)}" if same else "from none"
    if claim.wrong:
        return origin
    true = [name for name in EXACT if (values[name] or 0.0) <= claim.epsilon]
    allowed = ("too small", f"holds under {' '.join(true)} only", "holds")[len(true)]
    return f"{origin}; {allowed}"


def _reads_as(value: float | None, claimed: float) -> bool:
    """Rounded up or to the nearest, at two decimals."""
    return value is not None and claimed in (math.ceil(value * 100) / 100, round(value, 2))


# Text -----------------------------------------------------------------------------------------


def _table(rows: list[Row]) -> str:
    head = ("where", "figure", "settings", "delta", "claimed", *READINGS, "the claim")
    lines = [
        (
            *(row["where"], row["what"], row["settings"]),
            *(f"{row['delta']:.2g}", f"{row['claimed']:.3g}"),
            *("-" if row[name] is None else f"{row[name]:.4g}" for name in READINGS),
            "; ".join(filter(None, (row["verdict"], row["note"]))),
        )
        for row in rows
    ]
    return markdown(head, lines)


def summary(listed: list[Claim], rows: list[Row], batches: list[Row]) -> list[str]:
    """In words what agrees and what does not; only what these rows can tell."""
    pairs = list(zip(listed, rows, strict=True))
    true = [row for claim, row in pairs if not claim.wrong]
    return [
        _where_table_2_comes_from([row for row in rows if row["where"] == "Table 2"]),
        *(_told("slip", row) for row in rows if "slip" in row["note"]),
        *(_told("not_renyi", row) for row in rows if row["what"] == "warm start, steps, digit 7"),
        *(
            _told("halved" if _reads_as(row["Renyi"], row["claimed"]) else "not_halved", row)
            for claim, row in pairs
            if claim.rule == "scaled"
        ),
        _what_holds(true),
        _limit([row for claim, row in pairs if claim.sampled and not claim.wrong]),
        _item_wise([row for row in true if row["per particle"] is not None]),
        *(
            _told("batches", row, batches=_listed(f"{row[x]} ({x})" for x in _BATCH_READINGS))
            for row in batches
        ),
        *(_told("composed", row) for row in rows if row["what"] == "annealed, phases composed"),
    ]


def _told(name: str, row: Row, **more: str) -> str:
    """A sentence about one row."""
    three = {key: _three(value) for key, value in row.items() if isinstance(value, float)}
    return _WORDS[name].format(**row, **more, three=three, exact=_exact(row))


def _where_table_2_comes_from(rows: list[Row]) -> str:
    same = [row for row in rows if _reads_as(row["Renyi"], row["claimed"])]
    digits = _listed(row["what"].split(",")[0].removeprefix("digit ") for row in same)
    return _WORDS["table_2"].format(digits=digits, range=_ranges(rows))


def _what_holds(rows: list[Row]) -> str:
    bad = [row for row in rows if any(row[name] > row["claimed"] for name in EXACT)]
    listed = "; ".join(f"{row['what']}, {_three(row['claimed'])} ({_exact(row)})" for row in bad)
    short = f". Too small: {listed}" if bad else ""
    return _WORDS["holds"].format(good=len(rows) - len(bad), count=len(rows), short=short)


def _limit(rows: list[Row]) -> str:
    short = [100 * (1 - row["CLT"] / row["add-remove"]) for row in rows]
    below, span = sum(value > 0 for value in short), _span(f"{min(short):.0f}", f"{max(short):.0f}")
    return _WORDS["limit"].format(below=below, count=len(rows), span=span)


def _item_wise(rows: list[Row]) -> str:
    shown = [row for row in rows if row["what"] in _EXAMPLES]
    examples = _listed(f"{_three(row['per particle'])} for '{row['what']}'" for row in shown)
    ranges = _ranges(rows)
    return _WORDS["item_wise"].format(particles=PARTICLES, range=ranges, examples=examples)


def _exact(row: Row) -> str:
    told = " and ".join(f"{_three(row[name])} under {name}" for name in EXACT)
    return f"{told}, {row['note']}" if "Lemma" in row["note"] else told


def _ranges(rows: list[Row]) -> dict[str, str]:
    """From the least to the largest value, of every accounting that has some."""
    values = {name: [row[name] for row in rows if row[name] is not None] for name in READINGS}
    return {name: _span(_three(min(x)), _three(max(x))) for name, x in values.items() if x}


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _three(value: float) -> str:
    """Three digits, zeros among them."""
    return f"{value:#.3g}".removesuffix(".")


def _listed(words: Iterable[str]) -> str:
    *first, last = list(words) or ["none"]
    return f"{', '.join(first)} and {last}" if first else last


# Figure ---------------------------------------------------------------------------------------

_COLOURS = dict(zip(EXACT, (BLUE, VERMILION), strict=True))


def _figure(rows: list[Row]) -> Figure:
    """Left: claimed and exact epsilon of every row. Right: if each particle were clipped alone."""
    figure = blank(9.6, 0.29 * len(rows) + 1.6)
    main, side = figure.subplots(1, 2, sharey=True, width_ratios=(2.6, 1))
    _claimed_and_exact(main, rows)
    apart = [(row["per particle"], k) for k, row in enumerate(rows) if row["per particle"]]
    side.scatter(*zip(*apart, strict=True), s=34, color=GREY)
    main.set_yticks(range(len(rows)), labels=[row["what"] for row in rows])
    main.set(xlim=(0.016, 2.5), ylim=(len(rows) - 0.4, -0.6))  # leaves room for words on the left
    _axis(main, r"$\varepsilon$ at the $\delta$ of the figure")
    _axis(side, r"$\varepsilon$ if clipped per particle")
    side.tick_params(labelleft=False)
    _separate((main, side), rows)
    figure.legend(loc="outside upper center", ncols=4, frameon=False, fontsize=9.5)
    return figure


def _claimed_and_exact(axes: Axes, rows: list[Row]) -> None:
    """Three marks on a line, coloured as far as the claim is too small."""
    for k, row in enumerate(rows):
        claimed, exact = row["claimed"], [row[name] for name in _COLOURS]
        axes.plot([min(claimed, *exact), max(claimed, *exact)], [k, k], color="#c3cad1", lw=1.5)
        if claimed < max(exact):
            axes.plot([claimed, max(exact)], [k, k], color=VERMILION, lw=2)
    y = range(len(rows))
    for (name, colour), size in zip(_COLOURS.items(), (62, 34), strict=True):
        values = [row[name] for row in rows]
        axes.scatter(values, y, s=size, color=colour, label=f"exact, {name}", zorder=3)
    values, label = [row["claimed"] for row in rows], "claimed in the paper"
    axes.scatter(values, y, s=110, color=INK, marker="|", lw=2, label=label, zorder=4)
    axes.plot([], [], color=VERMILION, lw=2, label="the claim is too small by this")


def _axis(axes: Axes, label: str) -> None:
    axes.set_xscale("log")
    one_two_five(axes.xaxis)
    decorate(axes, label, "")
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def _separate(panels: tuple[Axes, Axes], rows: list[Row]) -> None:
    """Where in the paper it stands, and a thin line before the next such place."""
    main, _ = panels
    for k, row in enumerate(rows):
        if k > 0 and row["where"] == rows[k - 1]["where"]:
            continue
        place = (0.01, k)
        across = main.get_yaxis_transform()
        main.annotate(row["where"], place, xycoords=across, va="center", color=GREY, fontsize=9)
        for axes in panels if k > 0 else ():
            axes.axhline(k - 0.5, color="#d9dee3", lw=0.8)
