"""People with several records: what a person's guarantee costs, exactly and by the generic bound.

    python experiments/records.py [--epsilon 2] [--delta 1e-5] [--quick]

For people with g records in different time bins, under add-remove: the noise multiplier that makes
a run (epsilon, delta) for the person; the same for one record (kept at random); their ratio, the
number of records above which keeping all is better; and the epsilon that the generic theorem on
groups would state for the person at that very noise. About two minutes on two cores.
"""

from __future__ import annotations

import argparse
import math

from privtraj.privacy.accounting import Tally, bisect, tally
from privtraj.privacy.events import GaussianSum, Person
from privtraj.privacy.ledger import calibrate_noise

RUNS = {
    "20 full steps": (1.0, 20),
    "100 steps, rate 0.1": (0.1, 100),
    "250 steps, rate 0.01": (0.01, 250),
}


def row(name: str, records: int, epsilon: float, delta: float) -> str:
    """One line of the table."""
    rate, steps = RUNS[name]
    several, one = (
        calibrate_noise(epsilon, delta, "add-remove", steps=steps, rate=rate, person=Person(g))
        for g in (records, 1)
    )
    alone = tally([(GaussianSum(several, "", rate=rate), steps)], "add-remove")
    generic = generic_epsilon(alone, records, delta)
    return (
        f"| {name} | {records} | {several:.3g} | {one:.3g} | {several / one:.3g} | {generic:.3g} |"
    )


def generic_epsilon(one_record: Tally, records: int, delta: float) -> float:
    """What the general theorem on groups makes of a guarantee for one record; inf if nothing.

    (e, d) for one record is (g e, d (1 + e^e + ... + e^{(g - 1) e})) for g of them. The least g e
    whose delta is small enough; `Tally` of the g records themselves is never more.
    """

    def group_delta(epsilon: float) -> float:
        exponents = [k * epsilon for k in range(records)]
        return one_record.delta(epsilon) * sum(math.exp(min(x, 700.0)) for x in exponents)

    good = 1e-3
    while group_delta(good) > delta:
        good *= 2
        if good > 500:
            return math.inf
    return records * bisect(lambda eps: group_delta(eps) <= delta, good, good / 2, 1e-4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=2.0)
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--quick", action="store_true", help="two records, full steps only")
    args = parser.parse_args()
    print("| run | records | noise | noise, one record | better above | generic epsilon |")
    print("|---|---|---|---|---|---|")
    for name in list(RUNS)[: 1 if args.quick else None]:
        for records in (2,) if args.quick else (2, 5, 10):
            print(row(name, records, args.epsilon, args.delta), flush=True)


if __name__ == "__main__":
    main()
