"""The names that can be reproduced: one module each, with `run(options) -> Reproduction`."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from privtraj.base.errors import Arg, InputError
from reproduce.result import Options, Reproduction


class _Entry(NamedTuple):
    module: str
    needs_strokes: bool
    about: str


NAMES = {
    "table-w2": _Entry("table_w2", True, "Table 1: distance of the marginals, six digits"),
    "table-budgets": _Entry("table_budgets", False, "every privacy figure, recomputed exactly"),
    "fig-warmstart": _Entry("fig_warmstart", True, "six digits from private means"),
    "fig-plain": _Entry("fig_plain", True, "six digits without a warm start"),
    "fig-subsample": _Entry("fig_subsample", True, "digit 7 from 5 of 10 times"),
    "fig-multimodal": _Entry("fig_multimodal", False, "three modes: annealed, warm-started, ours"),
    "fig-eights": _Entry("fig_eights", True, "two ways to draw an eight"),
    "rates": _Entry("rates", False, "what the theorems say, measured"),
}


def reproduce(name: str, options: Options) -> Reproduction:
    """Run one of `NAMES`; a quick run has numbers and figures, but concludes nothing."""
    check_strokes(name, options.strokes)
    module = importlib.import_module(f"reproduce.{NAMES[name].module}")
    result: Reproduction = module.run(options)
    return without_verdict(result) if options.quick else result


def without_verdict(result: Reproduction) -> Reproduction:
    """The numbers and figures of a quick run, without what a full run would say of them."""
    rows = [{key: row[key] for key in row if key not in ("verdict", "note")} for row in result.rows]
    title = result.text.strip().partition("\n")[0]
    said = "A quick run: everything ran, its numbers mean nothing, and nothing follows from them."
    return replace(result, rows=rows, text=f"{title}\n\n{said}\n")


def check_strokes(name: str, strokes: Path | None) -> None:
    """Refuse what needs pen strokes without them."""
    if NAMES[name].needs_strokes and strokes is None:
        raise InputError(
            f"{name} needs the pen strokes of MNIST: give ",
            Arg("strokes="),
            " an .npz file or the folder of text files",
        )
    if strokes is not None and not strokes.exists():
        raise InputError(f"there is no file or directory '{strokes}': check the path")
