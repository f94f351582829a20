"""What the experiments share: scoring released people against real ones, and printing tables."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

RELEASED = 600  # people drawn from a model at each time
NON_PRIVATE = (50.0, 1e-2)  # a budget at which the noise no longer matters


def error_of(model: Any, truth: Sequence[np.ndarray], seed: int) -> float:
    """Average over time of squared W2 between released people and the true marginals (T clouds)."""
    from privtraj import metrics

    people = model.sample(RELEASED, times=model.times, seed=seed).values
    return metrics.average_squared_w2([people[:, i] for i in range(len(truth))], truth)


def spread(values: Iterable[float], digits: int = 4) -> str:
    """Mean and standard deviation, as .0012 (.0003)."""
    array = np.asarray(list(values))
    mean, std = (
        f"{array.mean():.{digits}f}",
        f"{array.std(ddof=1) if len(array) > 1 else 0:.{digits}f}",
    )
    return f"{mean.removeprefix('0')} ({std.removeprefix('0')})"


def in_parallel(function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> list[Any]:
    """function(*task) for every task, in as many processes as there are cores."""
    if len(tasks) == 1:
        return [function(*tasks[0])]
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        return [job.result() for job in [pool.submit(function, *task) for task in tasks]]


def write_json(path: str | None, content: Any) -> None:
    """Write every number to a file, if one is wanted."""
    if path:
        Path(path).write_text(json.dumps(content, indent=1))
        print(f"every number: {path}")
