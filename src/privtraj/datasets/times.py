"""Times at which simulated people are seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError

When = int | ArrayLike  # so many times spread over [0, 1], or the times themselves


def unit_times(times: When) -> Floats:
    """The times (T,) themselves."""
    u = np.linspace(0.0, 1.0, times) if isinstance(times, int) else np.asarray(times, np.float64)
    if u.ndim != 1 or len(u) == 0 or not ((u >= 0) & (u <= 1)).all():
        raise InputError("times must be a number of times, or times between 0 and 1")
    return u
