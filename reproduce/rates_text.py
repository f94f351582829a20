"""What the measured theorems say, in words (`texts/rates.toml`), from their rows."""

from __future__ import annotations

import numpy as np

from reproduce.fits import bound, select
from reproduce.known_process import Process, mismatch
from reproduce.tables import (
    Row,
    formatted,
    markdown,
    matching,
    mean_of,
    means_along,
    texts,
    values_of,
)
from reproduce.theorems import SIGMA

_WORDS = texts("rates")


def text(rows: list[Row]) -> str:
    """Markdown, a section for every statement."""
    parts = (_convergence, _statistics, _some_times, _paths, _discretisation)
    return "\n\n".join([_WORDS["introduction"], *(part(rows) for part in parts)])


def _convergence(rows: list[Row]) -> str:
    decays = [{**row, "above": row["start"] - row["limit"]} for row in select(rows, "decay")]
    return _WORDS["convergence"].format(
        table=formatted(decays, _WORDS["decays"]),
        verdicts="\n".join(_verdict(row, rows) for row in decays),
    )


def _verdict(row: Row, rows: list[Row]) -> str:
    share = row["rate"] / row["bound"]
    if share >= 1:
        return _WORDS["faster"].format(share=share, **row)
    told = _WORDS["slower"].format(share=share, **row)
    for bent in select(rows, "curvature", T=row["T"], lam=row["lam"], tau=row["tau"]):
        least = 2 * bent["least"]
        if least > 0:
            side = "below that, too" if row["rate"] < least else "above that"
            told += _WORDS["curved"].format(least=least, side=side)
    return told


def _statistics(rows: list[Row]) -> str:
    seen = select(rows, "statistics", noise=True)
    cells, other = matching(seen, factor=1.0), [row for row in seen if row["factor"] != 1]
    T, N = values_of(cells, "T"), values_of(cells, "N")
    slopes = [
        {**row, "what": f"{check}, {across} = {row[across]}"}
        for check, across in (("slope in N", "T"), ("slope in T", "N"))
        for row in select(rows, check)
    ]
    flat = [row for row in slopes if row["slope"] > row["slope_of_bound"] + row["slope_deviation"]]
    here = matching(seen, T=other[0]["T"], N=other[0]["N"])
    bare = select(rows, "statistics", noise=False)
    return _WORDS["statistics"].format(
        energy=Process().energy(),
        errors=markdown(
            ("T", *(f"N = {n}" for n in N)),
            [(f"{t}", *(_cell(matching(cells, T=t, N=n)) for n in N)) for t in T],
        ),
        constant=select(rows, "constant")[0],
        slopes=formatted(slopes, _WORDS["slopes"]),
        steep=len(slopes) - len(flat),
        count=len(slopes),
        flat=_WORDS["flat"] if flat else "",
        between=_errors(select(rows, "interpolation"), "T", "{:.1e} at T = {}"),
        floor=max(row["floor"] / row["error"] for row in cells),
        other=other[0],
        penalties=_errors(here, "factor", "{:.4f} with {:g}"),
        mismatch=mismatch(Process(), SIGMA),
        bare=_errors(bare, "T", "{:.4f} at T = {}"),
        crowd=bare[0]["N"],
    )


def _cell(these: list[Row]) -> str:
    error = mean_of(these, "error")
    return f"{error:.4f} ({error / bound(these[0]['T'], these[0]['N']):.2f})"


def _errors(rows: list[Row], along: str, sentence: str) -> str:
    """Mean errors, each with its place."""
    pairs = zip(*means_along(rows, along, "error"), strict=True)
    return ", ".join(sentence.format(error, at) for at, error in pairs)


def _some_times(rows: list[Row]) -> str:
    drawn = select(rows, "some times")
    whole, people = drawn[0]["T"], drawn[0]["N"]
    lines = [
        {
            "used": used,
            "alpha": np.log(used) / np.log(whole),
            "error": error,
            "printed": bound(whole / used, people),
            "corrected": bound(used, people),
        }
        for used, error in zip(*means_along(drawn, "used", "error"), strict=True)
    ]
    table = formatted(lines, _WORDS["drawn"])
    return _WORDS["some_times"].format(whole=whole, people=people, table=table)


def _paths(rows: list[Row]) -> str:
    sampled = [row for row in select(rows, "paths") if "paths" in row]
    costs = {row["coupling"]: row for row in select(rows, "paths") if "coupling" in row}
    return _WORDS["paths"].format(last=sampled[-1], **costs)


def _discretisation(rows: list[Row]) -> str:
    powers = {row["of"]: row["exponent"] for row in select(rows, "power")}
    m, eta = values_of(select(rows, "particles"), "m"), values_of(select(rows, "steps"), "eta")
    ends = {"m": (m[0], m[-1]), "eta": (eta[0], eta[-1])}
    return _WORDS["discretisation"].format(**powers, **ends)
