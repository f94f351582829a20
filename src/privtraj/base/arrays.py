"""Names for the arrays that pass between modules."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """The array, which nobody can change from now on."""
    array.setflags(write=False)
    return array
