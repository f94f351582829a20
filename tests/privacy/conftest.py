"""What tests of the guard share."""

import numpy as np
import pytest

from privtraj.privacy import noise
from privtraj.privacy.guard import Guard, Laplace
from privtraj.privacy.ledger import Ledger


class _Watching:
    """Seeded noise that remembers how many events the ledger held at each draw."""

    private = False

    def __init__(self, ledger):
        self.ledger, self.seen, self._bits = ledger, [], noise.SeededSource(3)

    def words(self, count):
        self.seen.append(len(self.ledger.events))
        return self._bits.words(count)


@pytest.fixture(scope="session")
def watched():
    """Function: snapshots and a budget -> a guard, and its noise, which watches the ledger."""

    def make(snapshots, epsilon, delta=1e-5):
        ledger = Ledger(epsilon, delta)
        source = _Watching(ledger)
        return snapshots.guarded(Guard, ledger, source), source

    return make


class _Blindfold(Guard):
    """Answers without looking: any trace of the data in a model came past the guard."""

    def ask(self, release):
        answer = super().ask(release)
        if isinstance(answer, list):
            return [np.full_like(one, 30) for one in answer]
        return np.full_like(answer, 30 if isinstance(release.noise, Laplace) else 0.01)


@pytest.fixture(scope="session")
def blindfold():
    """Class of guards that pay, ask, and answer the same whatever the data."""
    return _Blindfold
