"""What the measured theorems say, in words, from their rows."""

from __future__ import annotations

import numpy as np

from privtraj.paper.reproduce.fits import bound, select
from privtraj.paper.reproduce.known_process import Process, mismatch
from privtraj.paper.reproduce.tables import Row, formatted, markdown, mean_of, paragraphs
from privtraj.paper.reproduce.theorems import SIGMA


def text(rows: list[Row]) -> str:
    """Markdown, a section for every statement."""
    intro = (
        "# What the theorems say, measured\n\n"
        "Simulated people on a line, exact gradients, no privacy. Symbols are the paper's; the "
        "dynamics are its (10) with noise sqrt(2 eta tau), which belongs to its objective (7)."
    )
    parts = (_convergence, _statistics, _some_times, _paths, _discretisation)
    return paragraphs(intro, *(part(rows) for part in parts))


def _convergence(rows: list[Row]) -> str:
    decays = [{**row, "first": row["start"] - row["limit"]} for row in select(rows, "decay")]
    return paragraphs(
        "## Theorem C.3: F falls exponentially",
        "The paper: F - min F <= exp(-2 C_LSI tau t) (F_0 - min F). A law of variance v has "
        "C_LSI <= 1/v, with equality for normal laws, so 2 tau / v, v of the widest marginal, "
        "is the fastest rate that the theorem can promise. Rates (standard error) are fitted "
        "from where half of F - min F is gone to three times the noise that finitely many "
        "particles leave.",
        formatted(
            decays,
            ("T", "{T}"),
            ("lambda", "{lam:g}"),
            ("tau", "{tau:g}"),
            ("rate", "{rate:.3g} ({rate_error:.1g})"),
            ("2 tau / v", "{bound:.3g}"),
            ("small shift", "{shift_rate:.3g}"),
            ("F - min F, first", "{first:.2g}"),
            ("noise", "{noise:.1g}"),
        ),
        "\n".join(_verdict(row, rows) for row in decays),
        "The decrease is exponential, and with a strong fit faster than printed. But the "
        "printed rate is no lower bound in general. The usual proof needs F - min F <= tau "
        "KL(mu | Gibbs measure of mu), hence a convex G, and by Proposition C.2 G is not "
        "jointly convex. A small shift of all times together shows why: transport and entropy "
        "do not notice it, only the data fit brings it back, at the rate 2 dt / (lambda "
        "(sigma^2 + v)) for normal marginals, which more times or a larger lambda make as "
        "small as one likes.",
    )


def _verdict(row: Row, rows: list[Row]) -> str:
    times = row["rate"] / row["bound"]
    where = f"- T = {row['T']}, lambda = {row['lam']:g}, tau = {row['tau']:g}:"
    if times >= 1:
        return f"{where} {times:.1f} times as fast as the theorem can ask for."
    told = f"{where} {times:.2f} of 2 tau / v."
    for bent in select(rows, "curvature", T=row["T"], lam=row["lam"], tau=row["tau"]):
        least = 2 * bent["least"]
        if least > 0:
            told += (
                f" By Bakry and Emery 2 C_LSI tau is at least twice the least second derivative of "
                f"V, {least:.2g} as measured: the rate is "
                f"{'below that, too' if row['rate'] < least else 'above that'}."
            )
    return told


def _statistics(rows: list[Row]) -> str:
    cells = select(rows, "statistics", noise=True, factor=1.0)
    T, N = (sorted({row[name] for row in cells}) for name in ("T", "N"))
    errors = [(f"{t}", *(_cell(select(cells, "statistics", T=t, N=n)) for n in N)) for t in T]
    constant = select(rows, "constant")[0]
    floor = max(row["floor"] / row["error"] for row in cells)
    return paragraphs(
        "## Theorem 3.2: statistical rate",
        "The paper: the integral over time of d_H^2(R_t * g_sigma, P_t * g_sigma) is at most a "
        "constant times max(1/T, N^(-2/3) T^(-1/3)), up to logarithms. Measured on a process "
        "with known normal marginals, at and between the times, with tau its diffusivity and "
        "lambda = N^(-2/3) T^(-1/3) / energy, so that the penalty at the truth is the second "
        f"term (energy: half the integral of E|drift|^2, {Process().energy():.3f}). Error, "
        "and its share of the bound:",
        markdown(("T", *(f"N = {n}" for n in N)), errors),
        f"The error is {constant['smallest']:.2g} to {constant['largest']:.2g} times the "
        "bound: on this grid it holds with the larger of these as its constant.",
        _slopes(rows),
        _between(rows),
        f"The noise of the particles is at most {floor:.1%} of the error, by the distance "
        "between the halves of the averaged iterates; their O(1/m) bias is not in it.",
        _penalties(rows),
        _without_noise(rows),
    )


def _cell(these: list[Row]) -> str:
    error = mean_of(these, "error")
    return f"{error:.4f} ({error / bound(these[0]['T'], these[0]['N']):.2f})"


def _slopes(rows: list[Row]) -> str:
    slopes = [
        {**row, "what": f"{check}, {across} = {row[across]}"}
        for check, across in (("slope in N", "T"), ("slope in T", "N"))
        for row in select(rows, check)
    ]
    flat = [row for row in slopes if row["slope"] > row["slope_of_bound"] + row["slope_deviation"]]
    table = formatted(
        slopes,
        ("log-log fit over the whole row", "{what}"),
        ("measured", "{slope:.2f} ({slope_deviation:.2f})"),
        ("bound", "{slope_of_bound:.2f}"),
    )
    told = (
        f"{len(slopes) - len(flat)} of {len(slopes)} slopes are as steep as the bound's, within a "
        "standard deviation over seeds."
    )
    if flat:
        told += (
            " Where one is flatter, the error at few times is far below 1/T already, and the "
            "statistical term takes over early."
        )
    return f"{table}\n\n{told}"


def _between(rows: list[Row]) -> str:
    told = [
        f"{row['error']:.1e} at T = {row['T']}"
        for row in sorted(select(rows, "interpolation"), key=lambda row: row["T"])
    ]
    return (
        "Where more people no longer help: if the marginals at the T times were exact, the bridges "
        f"between them would leave {', '.join(told)}. For this smooth process that falls much "
        "faster than the bound's 1/T."
    )


def _penalties(rows: list[Row]) -> str:
    other = [row for row in select(rows, "statistics", noise=True) if row["factor"] != 1]
    T, N = other[0]["T"], other[0]["N"]
    factors = sorted({row["factor"] for row in other} | {1.0})
    told = [
        f"{mean_of(select(rows, 'statistics', T=T, N=N, noise=True, factor=f), 'error'):.4f} "
        f"with {f:g}"
        for f in factors
    ]
    return f"The choice of lambda at T = {T}, N = {N}: error {', '.join(told)} times that lambda."


def _without_noise(rows: list[Row]) -> str:
    bare = select(rows, "statistics", noise=False)
    T = sorted({row["T"] for row in bare})
    told = [f"{mean_of(select(bare, 'statistics', T=t), 'error'):.4f} at T = {t}" for t in T]
    return (
        "The theorem is about people seen with the noise of the kernel, Y = X + sigma Z, as the "
        "work it cites has it. Section 2 of the paper has samples of P_t itself. Then R_t * "
        "g_sigma estimates P_t, not P_t * g_sigma, and the error tends to their distance, "
        f"{mismatch(Process(), SIGMA):.4f}, not to zero: {', '.join(told)} "
        f"(N = {bare[0]['N']})."
    )


def _some_times(rows: list[Row]) -> str:
    drawn = select(rows, "some times")
    whole, people = drawn[0]["T"], drawn[0]["N"]
    lines: list[tuple[str, ...]] = []
    for used in sorted({row["used"] for row in drawn}):
        error = mean_of(select(drawn, "some times", used=used), "error")
        limits = f"{bound(whole / used, people):.3f}", f"{bound(used, people):.3f}"
        lines.append((f"{used}", f"{np.log(used) / np.log(whole):.2f}", f"{error:.4f}", *limits))
    head = ("times used", "alpha", "error", "bound as printed", "with alpha for 1 - alpha")
    return paragraphs(
        "## Corollary 4.3: only some of the times",
        "The paper: with T^alpha times drawn at random the bound is max(T^-(1-alpha), N^(-2/3) "
        f"T^(-(1-alpha)/3)). Measured at T = {whole}, N = {people}, the first and the last "
        "time always among them:",
        markdown(head, lines),
        "The printed bound grows with the number of times used, the error falls. With alpha in "
        "place of 1 - alpha, which is what Theorem 3.2 gives for T^alpha times, it falls too.",
    )


def _paths(rows: list[Row]) -> str:
    all_rows = select(rows, "paths")
    sampled = [row for row in all_rows if "paths" in row]
    costs = {row["coupling"]: row for row in all_rows if "coupling" in row}
    own, last = costs["entropic"], sampled[-1]
    return paragraphs(
        "## Theorem C.1: from marginals to paths",
        "The paper: chains over the entropic plans, with Brownian bridges between, have the "
        "marginals of F's minimiser and minimise the objective over laws of paths.",
        f"- {last['paths']} sampled paths are {last['squared_w2']:.1e} from the particles in "
        f"squared W2, mean over {last['T']} times; as many independent draws of the particles "
        f"{last['draws_squared_w2']:.1e}. Paths are drawn in strata, so they do better.",
        f"- tau H(R | W) of the chains, without the marginals' part, is {own['cost']:.4f} by "
        f"sampling (standard error {own['cost_error']:.4f}); the transport of F is "
        f"{own['transport']:.4f}. Exact plans cost {costs['exact']['cost']:.3f}, independent "
        f"ones {costs['independent']['cost']:.3f}, so of these couplings of the same marginals "
        "the entropic one is the cheapest.",
    )


def _discretisation(rows: list[Row]) -> str:
    particles, steps = (select(rows, "power", of=name)[0] for name in ("particles", "steps"))
    m, eta = (
        sorted({row[name] for row in select(rows, check)})
        for check, name in (("particles", "m"), ("steps", "eta"))
    )
    return paragraphs(
        "## Appendix C.4: particles and steps",
        "The paper: O(1/m) from the mean-field limit, cited for another objective; nothing on "
        "eta. Measured: G = fit + transport, settled, fitted as limit + factor x^p.",
        f"- m = {m[0]} to {m[-1]}: p = {particles['exponent']:.2f} in 1/m.",
        f"- eta = {eta[0]:g} to {eta[-1]:g}, all on one Brownian path: p = "
        f"{steps['exponent']:.2f} in eta. The usual first-order bias has p = 1.",
    )
