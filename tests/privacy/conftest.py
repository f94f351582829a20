"""What tests of the guard share."""

import numpy as np
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


class _Blindfold(SamplingGuard):
    """Answers without looking: any trace of the data in a model came past the guard."""

    def counts(self, sides, epsilon, what):
        return np.full_like(super().counts(sides, epsilon, what), 30)

    def sums(self, statistic, parameters, clip, noise_multiplier, what):
        answer = super().sums(statistic, parameters, clip, noise_multiplier, what)
        return 0.01 * np.ones_like(answer)

    def kernel_sums(self, weight_fn, kernel, clip, noise_multiplier, what):
        answer = super().kernel_sums(weight_fn, kernel, clip, noise_multiplier, what)
        return 0.01 * np.ones_like(answer)

    def thirds(self, question, epsilon, what):
        return np.full_like(super().thirds(question, epsilon, what), 30)


@pytest.fixture(scope="session")
def blindfold():
    """Class of guards that pay, ask, and answer the same whatever the data."""
    return _Blindfold
