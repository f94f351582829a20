"""What a reproduction is given, what it gives, and the files it becomes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privtraj.base import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from reproduce.tables import Row

FIGURE_FORMATS = (".png", ".svg")


@dataclass(frozen=True)
class Options:
    """strokes: where the pen strokes are.  seeds: repetitions.  quick: smallest run that exercises
    everything, its numbers mean nothing.  progress: told what is done, of how much."""

    strokes: Path | None = None
    seeds: int = 3
    quick: bool = False
    progress: Callable[[int, int], None] | None = None


@dataclass(frozen=True)
class Reproduction:
    """settings: all it takes to repeat.  rows: every number, one flat dictionary per line of the
    table.  text: Markdown, where it agrees with the paper and where not.  figures: by file name.
    """

    name: str
    settings: dict[str, Any]
    rows: list[Row]
    text: str
    figures: dict[str, Figure] = field(default_factory=dict)

    def files(self, out: Path) -> list[Path]:
        """What `write` will write."""
        tables = [f"{self.name}{suffix}" for suffix in (".csv", ".json", ".md")]
        figures = [f"{name}{suffix}" for name in self.figures for suffix in FIGURE_FORMATS]
        return [out / name for name in (*tables, *figures)]

    def write(self, out: Path, force: bool = False) -> list[Path]:
        """The numbers as CSV and JSON, the text, and the figures; each whole or not at all."""
        import pandas as pd

        from privtraj.base.files import write_text
        from privtraj.plot import save_figure

        named = {"name": self.name, "version": __version__}
        whole = {**named, "settings": self.settings, "rows": self.rows}
        contents = {
            ".csv": pd.DataFrame(self.rows).to_csv(index=False),
            ".json": json.dumps(whole, indent=1) + "\n",
            ".md": self.text.rstrip() + "\n",
        }
        for suffix, content in contents.items():
            write_text(content, out / f"{self.name}{suffix}", force)
        for name, figure in self.figures.items():
            for suffix in FIGURE_FORMATS:
                save_figure(figure, out / f"{name}{suffix}", force)
        return self.files(out)
