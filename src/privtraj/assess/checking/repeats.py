"""How often things come back, in one pass and bounded memory.

Things are known by 64-bit hashes. Of these, all below a limit are counted exactly; whenever more
than `MOST` are, the limit is halved. What comes back has the same hash, so a share of those that
are counted is that of all of them, and a number is scaled by the share of hashes below the limit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

MOST = 1 << 21
"""Different hashes that are counted: 32 MB, and a few times that while they are put in order."""

_KEY = np.uint64(0x9E3779B97F4A7C15)


class Repeats:
    """Counts of hashes that are spread evenly over 64 bits."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._halvings = 0
        self._hashes: Hashes = np.empty(0, np.uint64)
        self._counts = np.empty(0, np.int64)
        self._waiting: list[Hashes] = []

    def add(self, hashes: Hashes) -> None:
        """Some more of them (n,)."""
        self._waiting.append(self._below(hashes))
        if sum(map(len, self._waiting)) > self._most:
            self._compact()

    @property
    def counts(self) -> NDArray[np.int64]:
        """(k,) how often each of those that are counted came."""
        self._compact()
        return self._counts

    @property
    def scale(self) -> int:
        """How many things one that is counted stands for; 1 if all are counted."""
        self._compact()
        return 1 << self._halvings

    def _below(self, hashes: Hashes) -> Hashes:
        limit = np.uint64(2**64 - 1) >> np.uint64(self._halvings)
        return hashes[hashes <= limit]

    def _compact(self) -> None:
        if not self._waiting:
            return
        every = np.concatenate([self._hashes, *self._waiting])
        each = np.concatenate([self._counts, np.ones(len(every) - len(self._counts), np.int64)])
        self._waiting = []
        self._hashes, place = np.unique(every, return_inverse=True)
        self._counts = np.bincount(place, each, len(self._hashes)).astype(np.int64)
        while len(self._hashes) > self._most:
            self._halvings += 1
            kept = len(self._below(self._hashes))  # they are sorted
            self._hashes, self._counts = self._hashes[:kept], self._counts[:kept]


def row_hashes(rows: int, columns: Iterable[NDArray[np.float64] | Hashes]) -> Hashes:
    """(n,) of n rows, given as columns (n,): numbers, NaN where missing, or hashes."""
    found: Hashes = np.full(rows, _KEY)
    for column in columns:
        found = _mixed(found ^ _words(column)) + _KEY
    return found


def _words(column: NDArray[Any]) -> Hashes:
    """A zero has one sign only, and what is missing one NaN."""
    if column.dtype == np.uint64:
        return column
    words: Hashes = np.where(np.isnan(column), np.nan, column + 0.0).view(np.uint64)
    return words


def text_hashes(texts: Iterable[object]) -> Hashes:
    """(k,) of things that differ if they read differently; other ones in every process."""
    return np.array([hash(str(text)) % 2**64 for text in texts], dtype=np.uint64)


def _mixed(words: Hashes) -> Hashes:
    """The finaliser of SplitMix64: every bit of the result depends on every bit of the word."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
