"""The look that all figures share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privtraj.text import short as short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Tints of blue, and vermilion, of the Okabe-Ito palette, which colour-blind readers tell apart.
PALE = "#d3e6f2"
BLUE = "#8cbfe0"
VERMILION = "#D55E00"
GREY = "#5f6b76"
INK = "#22272c"


def decorate(axes: Axes, x: str, y: str) -> None:
    """Labels, a quiet grid, no box."""
    axes.set_xlabel(x, fontsize=10, color=INK)
    axes.set_ylabel(y, fontsize=10, color=INK)
    axes.tick_params(labelsize=9, colors=INK, length=3, color="#9aa4ad")
    axes.grid(color="#d9dee3", lw=0.6, alpha=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#9aa4ad")
