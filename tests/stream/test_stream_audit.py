"""Canaries that return, come late or withdraw: what an attacker finds stays below the claim.

Who is in which batch is decided by the code itself; what a batch then releases is the count of the
canary's cell with discrete Laplace noise of epsilon 1, drawn here so often that an audit sees.
"""

import numpy as np
import pytest

import privtraj as pt
from privtraj.audit.findings import compare
from privtraj.base.errors import InputError
from privtraj.privacy.accounting import tally
from privtraj.privacy.events import LaplaceCounts
from privtraj.privacy.ledger_file import LedgerFile
from privtraj.stream.people import People, new_key

pytestmark = pytest.mark.usefixtures("fast")
RUNS = 2000
WRITTEN = ("7", "7.0", "007", " 7")  # the canary, in one batch after the other
STORIES = {  # first days of the batches with the canary; returning; most batches that may count
    "returns": ([0, 10, 20], "skip", 1),
    "comes late": ([0, 10, 0], "skip", 1),
    "withdraws": ([0, "withdraws", 10, 30], "pay", 1),
    "withdraws before": (["withdraws", 10, 20], "pay", 0),
    "returns in a window": ([0, 10, 20, 30], "pay", 2),
    "comes late in a window": ([0, 10, 40, 5], "pay", 2),
}


def days_counted(folder, story):
    """First days of the batches that count the canary."""
    steps, returning, _ = STORIES[story]
    folder.mkdir()
    new_key(folder / "key")
    window = 15.0 if returning == "pay" else None
    ledger = LedgerFile(folder / "l", cap_epsilon=2.0, cap_delta=0.5, window_days=window)
    most = {"most_batches": 2} if returning == "pay" else {}
    people = People.open(folder / "people", folder / "key", returning=returning, **most)
    admitted(people, ledger, "before", -40, canary=False)
    found = []
    for number, start in enumerate(steps):
        if start == "withdraws":
            people.withdraw(["7.00"], ledger)
        elif admitted(people, ledger, number, start):
            found.append(start)
    return found


def admitted(people, ledger, name, start, canary=True):
    """Whether a batch of twelve and the canary counts the canary; a refused one counts nobody."""
    ids = [f"{name} {k}" for k in range(12)]
    ids += [WRITTEN[name % len(WRITTEN)]] if canary else []
    points = np.append(np.full(12, 0.25), [0.75] * canary)
    span = {"bounds": [(0, 1)], "time_range": (start, start + 10)}
    batch = pt.Snapshots.from_arrays(np.full(len(ids), start + 1.0), points, person=ids, **span)
    try:
        batch, _ = people.admit(batch, ledger, 1.0, 1e-5, "add-remove", "a fit")
    except InputError:
        return False
    return bool((batch._rows.points[:, 0] > 0.5).any())


@pytest.mark.parametrize("story", STORIES)
def test_an_attacker_stays_below_the_claim(story, tmp_path):
    days, most = days_counted(tmp_path / "house", story), STORIES[story][2]
    near = (sum(abs(day - first) < 15 for day in days) for first in days)
    seen = max(near, default=0) if most == 2 else len(days)
    rng, shrink = np.random.default_rng(0), np.exp(-1.0)

    def scores(present):  # log likelihood ratios of all counts, the best that anybody can do
        x = rng.geometric(1 - shrink, (RUNS, 4)) - rng.geometric(1 - shrink, (RUNS, 4))
        x[:, :seen] += present
        ratios = np.abs(x) - np.abs(x - 1)
        return ratios[:, : max(seen, 1)].sum(axis=1) + 1e-3 * rng.random(RUNS)

    claim = tally([(LaplaceCounts(max(most, 0.01), "counts"), 1)], "add-remove")
    assert not compare(scores(0), scores(1), claim, 0.0, confidence=0.99).violated
    assert seen == most  # and the claim is no larger than it has to be
