"""Curves of benchmarks/scale.py, several devices in one picture.

python benchmarks/scale_plot.py OUT.png cpu.json [gpu.json ...]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

AXES = {
    "people": "people N, all times together",
    "particles": "particles m per time",
    "times": "times T, N fixed",
    "features": "features d",
}


def draw(runs: list[dict[str, Any]], out: Path) -> None:
    """Milliseconds of a step and of its sums over people, against each size; log-log."""
    from matplotlib.figure import Figure

    from privtraj.plot import GREY, VERMILION, decorate

    figure = Figure(figsize=(9.5, 6.2), layout="constrained")
    panels = figure.subplots(2, 2).ravel()
    for panel, (axis, label) in zip(panels, AXES.items(), strict=True):
        for run, colour in zip(runs, (GREY, VERMILION, "#0072B2"), strict=False):
            rows = [row for row in run["steps"] if row["axis"] == axis]
            sizes = [row[axis] for row in rows]
            for what, style in (("step", "-o"), ("pulls", "--.")):
                times = [1e3 * row[what] for row in rows]
                name = f"{run['device']}: {'whole step' if what == 'step' else 'sums over people'}"
                panel.plot(sizes, times, style, color=colour, label=name, markersize=4)
        panel.set(xscale="log", yscale="log")
        panel.set_xticks(sizes, [f"{size:g}" for size in sizes])
        panel.minorticks_off()
        decorate(panel, label, "milliseconds")
    panels[0].legend(frameon=False, fontsize=8)
    figure.savefig(out, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("runs", type=Path, nargs="+")
    args = parser.parse_args()
    draw([json.loads(path.read_text()) for path in args.runs], args.out)


if __name__ == "__main__":
    main()
