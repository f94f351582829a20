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
from typing import Any

from privtraj.paper.reproduce.budgets_plot import budgets_figure
from privtraj.paper.reproduce.claims import Claim, claims
from privtraj.paper.reproduce.parallel import call, in_parallel
from privtraj.paper.reproduce.readings import (
    COARSE,
    COARSER,
    EXACT,
    PARTICLES,
    READINGS,
    epsilon_of,
    largest_batch,
)
from privtraj.paper.reproduce.result import Options, Reproduction
from privtraj.paper.reproduce.tables import Row, markdown, paragraphs
from privtraj.privacy.accounting import FINE

NAME = "table-budgets"
QUICK = ("digit 7, no warm start", "5 of 10 times, a public choice")

_EXAMPLES = ("digit 7, no warm start", "warm start, steps, digit 7")
_BATCHES = "largest batch"
_BATCH_READINGS = ("CLT", "Renyi", *EXACT)


def run(options: Options) -> Reproduction:
    """Every figure by every accounting; two figures if quick."""
    listed = [claim for claim in claims() if not options.quick or claim.what in QUICK]
    annealed = [claim for claim in listed if claim.rule == "added up"]
    tasks: list[tuple[Any, ...]] = [
        *((largest_batch, claim, reading) for claim in annealed for reading in _BATCH_READINGS),
        *((epsilon_of, claim, reading) for claim in listed for reading in READINGS),
    ]
    answers = iter(in_parallel(call, tasks, options.progress))
    batches = [batch_row(claim, [next(answers) for _ in _BATCH_READINGS]) for claim in annealed]
    rows = [epsilon_row(claim, [next(answers) for _ in READINGS]) for claim in listed]
    text = paragraphs(
        "# Every privacy figure of the paper, recomputed",
        _INTRODUCTION,
        _table(rows),
        "\n".join(f"- {sentence}" for sentence in summary(listed, rows, batches)),
    )
    shown = [row for claim, row in zip(listed, rows, strict=True) if not claim.wrong]
    return Reproduction(NAME, _settings(), [*rows, *batches], text, {NAME: budgets_figure(shown)})


def _settings() -> dict[str, Any]:
    return {
        "loss grid, certified": FINE,
        "loss grid, searching a batch": COARSE,
        "loss grid, per particle": COARSER,
        "particles": PARTICLES,
        "dp-accounting": version("dp-accounting"),
        "assumed": {
            "K and tau of Table 2": "a comment in the paper's source",
            "tau of Figures 1 and 2, rho of Figure 2": "as Table 2",
            "N of digit 6 in Figure 1": "sixes of MNIST over ten times",
            "rho of Figure 3": "batches of Figure 1",
            "noise of the counts in Figure 3": "Lemma A.1 as printed",
        },
    }


# Rows -----------------------------------------------------------------------------------------


def epsilon_row(claim: Claim, values: Iterable[float]) -> Row:
    """A figure, its value by each accounting (None where that has no answer), and the verdict."""
    by_reading = {
        reading: None if math.isnan(value) else value
        for reading, value in zip(READINGS, values, strict=True)
    }
    return {
        **_head(claim, "epsilon"),
        "claimed": claim.epsilon,
        **by_reading,
        "verdict": _verdict(claim, by_reading),
        "note": claim.note,
    }


def batch_row(claim: Claim, values: Iterable[float]) -> Row:
    """The largest batch by each accounting that the figure leaves room for."""
    return {
        **_head(claim, _BATCHES),
        "claimed": None,
        **dict.fromkeys(READINGS),
        **dict(zip(_BATCH_READINGS, values, strict=True)),
        "verdict": "",
        "note": "rho is not stated",
    }


def _head(claim: Claim, quantity: str) -> Row:
    return {
        "where": claim.where,
        "what": claim.what,
        "quantity": quantity,
        "settings": claim.settings,
        "delta": claim.delta,
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

_INTRODUCTION = """\
Epsilon at the delta of the line. **CLT**: the limit of the paper's Lemma 3.1, taken as if exact.
**Renyi**: Renyi accounting for batches drawn without replacement, one person replaced, noise
multiplier tau, hence sensitivity C; **Renyi, 2 C**: the same with the sensitivity that replacing a
vector of norm C has. **add-remove**, **replace-one**: exact, for Poisson sampling as the paper
describes it; its neighbours are those of replace-one. **per particle**: exact under add-remove if
"clip item-wise" means each particle's gradient. In brackets: settings that the paper does not state
at that figure."""


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
        *map(_slip, (row for row in rows if "slip" in row["note"])),
        *map(_not_renyi, (row for row in rows if row["what"] == "warm start, steps, digit 7")),
        *map(_halved, (row for claim, row in pairs if claim.rule == "scaled")),
        _what_holds(true),
        _limit([row for claim, row in pairs if claim.sampled and not claim.wrong]),
        _item_wise([row for row in true if row["per particle"] is not None]),
        *map(_batches, batches),
        *map(_composed, (row for row in rows if row["what"] == "annealed, phases composed")),
    ]


def _where_table_2_comes_from(rows: list[Row]) -> str:
    same = [row for row in rows if _reads_as(row["Renyi"], row["claimed"])]
    names = _listed(row["what"].split(",")[0].removeprefix("digit ") for row in same)
    return (
        f"Table 2 is Renyi accounting for batches drawn without replacement at sensitivity C: that "
        f"gives the printed epsilon of digit {names} to two decimals. Poisson batches, which the "
        f"paper describes, cost {_range(rows, 'add-remove')} under add-remove and "
        f"{_range(rows, 'replace-one')} under replace-one. With the move of 2 C that a replaced "
        f"person makes, the same Renyi bound is {_range(rows, 'Renyi, 2 C')}."
    )


def _slip(row: Row) -> str:
    return (
        f"{row['what']}: {row['claimed']:.2f} is a slip. What gave the other lines of the table "
        f"gives {row['Renyi']:.2f}; exact are {_exact(row)}."
    )


def _not_renyi(row: Row) -> str:
    return (
        f"{row['what']}: the paper says {_three(row['claimed'])} and does not state tau. At "
        f"tau = 1 the accounting of Table 2 gives {_three(row['Renyi'])}; exact are {_exact(row)}."
    )


def _halved(row: Row) -> str:
    if not _reads_as(row["Renyi"], row["claimed"]):
        return f"{row['where']}: {row['claimed']:.2f} is not half of the Renyi epsilon."
    return (
        f"{row['where']}: {row['claimed']:.2f} is half of the Renyi epsilon at twice the delta. "
        f"Dropping half of the times at random halves delta, but not epsilon."
    )


def _what_holds(rows: list[Row]) -> str:
    holds = [row for row in rows if all(row[name] <= row["claimed"] for name in EXACT)]
    short = [row for row in rows if row not in holds]
    listed = "; ".join(f"{row['what']}, {_three(row['claimed'])} ({_exact(row)})" for row in short)
    return (
        f"Accounted exactly, {len(holds)} of {len(rows)} figures hold under both relations"
        + (f". Too small: {listed}" if short else "")
        + "."
    )


def _limit(rows: list[Row]) -> str:
    short = [100 * (1 - row["CLT"] / row["add-remove"]) for row in rows]
    below = sum(value > 0 for value in short)
    return (
        f"The limit of Lemma 3.1 is below the exact epsilon under add-remove for {below} of "
        f"{len(rows)} figures of sampled steps, by "
        f"{_span(f'{min(short):.0f}', f'{max(short):.0f}')} %: it is no guarantee."
    )


def _item_wise(rows: list[Row]) -> str:
    told = _listed(
        f"{_three(row['per particle'])} for '{row['what']}'"
        for row in rows
        if row["what"] in _EXAMPLES
    )
    return (
        f"If each of {PARTICLES} particles' gradients is clipped by itself, one person moves the "
        f"sum by sqrt({PARTICLES}) C, and epsilon is {_range(rows, 'per particle')}: {told}. The "
        "clip has to be joint."
    )


def _batches(row: Row) -> str:
    told = _listed(f"{row[name]} ({name})" for name in _BATCH_READINGS)
    return (
        f"{row['where']}: rho is not stated. Phases added up, the printed epsilon leaves room for "
        f"batches of at most {told} of 3000."
    )


def _composed(row: Row) -> str:
    return (
        f"{row['where']}, its phases composed instead of added up: exact are {_exact(row)}, where "
        f"the paper says {_three(row['claimed'])}."
    )


def _exact(row: Row) -> str:
    told = " and ".join(f"{_three(row[name])} under {name}" for name in EXACT)
    return f"{told}, {row['note']}" if "Lemma" in row["note"] else told


def _range(rows: list[Row], reading: str) -> str:
    values = [row[reading] for row in rows]
    return _span(_three(min(values)), _three(max(values)))


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _three(value: float) -> str:
    """Three digits, zeros among them."""
    return f"{value:#.3g}".removesuffix(".")


def _listed(words: Iterable[str]) -> str:
    *first, last = list(words) or ["none"]
    return f"{', '.join(first)} and {last}" if first else last
