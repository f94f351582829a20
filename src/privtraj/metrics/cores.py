"""Comparisons on all cores: exact transport and most of NumPy leave Python to the others."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Made = TypeVar("Made")


def on_all_cores(make: Callable[..., Made], cases: Iterable[tuple[Any, ...]]) -> Iterator[Made]:
    """make(*case) of each case, in their order, as soon as they are there.

    What comes out does not depend on the number of cores if `make` has no state.
    """
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(lambda case: make(*case), cases)
