"""What tests of the guard share."""

import pytest

from privtraj.privacy import noise
from privtraj.privacy.ledger import Ledger
from privtraj.privacy.sampling import SamplingGuard


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
        return snapshots.guarded(SamplingGuard, ledger, source), source

    return make
