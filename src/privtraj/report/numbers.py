"""Numbers as people write them."""

from __future__ import annotations

import math
from typing import Any


def percent(share: float) -> str:
    """At most two digits below 10 %."""
    value = 100 * share
    if 0 < value < 0.1:
        return "less than 0.1\N{NO-BREAK SPACE}%"
    digits = f"{value:.0f}" if value >= 10 or value == 0 else f"{value:.2g}"
    return f"{digits}\N{NO-BREAK SPACE}%"


def percent_up(share: float) -> str:
    """Percent with one decimal, never less than it is."""
    return f"{min(math.ceil(share * 1000 - 1e-9) / 10, 100):g}\N{NO-BREAK SPACE}%"


def round_number(value: Any) -> str:
    """At most three digits, with a narrow space between thousands."""
    value = float(value)
    if abs(value) < 1000:
        return f"{value:.3g}" if abs(value) < 10 else f"{value:.0f}"
    return f"{float(f'{value:.3g}'):,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")
