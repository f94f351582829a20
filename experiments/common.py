"""What the experiments share: scoring released people against real ones, and printing tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reproduce.parallel import in_parallel
from reproduce.tables import spread

__all__ = ["NON_PRIVATE", "RELEASED", "error_of", "in_parallel", "spread", "write_json"]

RELEASED = 600  # people drawn from a model at each time
NON_PRIVATE = (50.0, 1e-2)  # a budget at which the noise no longer matters


def error_of(model: Any, truth: Sequence[np.ndarray], seed: int) -> float:
    """Average over time of squared W2 between released people and the true marginals (T clouds)."""
    from privtraj.metrics import average_squared_w2

    people = model.sample(RELEASED, times=model.times, seed=seed).values
    return average_squared_w2([people[:, i] for i in range(len(truth))], truth)


def write_json(path: str | None, content: Any) -> None:
    """Write every number to a file, if one is wanted."""
    if path:
        Path(path).write_text(json.dumps(content, indent=1))
        print(f"every number: {path}")
