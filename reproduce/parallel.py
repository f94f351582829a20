"""Independent runs on all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any


def in_parallel(
    function: Callable[..., Any],
    tasks: Sequence[tuple[Any, ...]],
    progress: Callable[[int, int], None] | None = None,
) -> list[Any]:
    """function(*task) for every task, in order, in as many processes as there are cores.

    A module-level function; its work, not its inputs and results, should be what takes time.
    """
    if len(tasks) == 1:
        return [function(*tasks[0])]
    results = []
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        jobs = [pool.submit(function, *task) for task in tasks]
        try:
            for job in jobs:
                results.append(job.result())
                if progress is not None:
                    progress(len(results), len(tasks))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return results


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """For tasks of `in_parallel` that begin with their function."""
    return function(*arguments)
