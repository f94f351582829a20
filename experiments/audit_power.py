"""How often an audit catches planted breaks, and how often it accuses code that is not broken.

    python experiments/audit_power.py [--audits 300] [--runs 20] [--break NAME] [--quick]

Whole audits of real fits, again and again, each with seeds of its own. A break changes the noise
that the guard draws; the ledger goes on to state what it always does. For each: in how many audits
a claim was called false, by what, and a lower (for no break, an upper) bound at 95 % confidence on
how often that happens. 300 of 300 make 99 %. About two minutes for each line.
"""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np

from privtraj.audit.attack import audit
from privtraj.audit.findings import at_least, at_most
from privtraj.audit.scores import ALL
from privtraj.privacy import noise
from privtraj.synthesizer import TrajectorySynthesizer

CONFIDENCE = 0.95
LEAN = {
    "windows": "bins",
    "time_coupling": 0.0,
}  # attacked are the answers, not what follows
DRAWN = noise.laplace_integers


def exact_head_count(source, shape, epsilon):
    """Practically no noise where people are counted, whatever was paid."""
    return DRAWN(source, shape, 64.0 if shape[1] == 1 else epsilon)


def one_vector_for_all_times(source, shape, epsilon):
    """The same noise at all times: differences between times are exact."""
    return np.broadcast_to(DRAWN(source, shape[1:], epsilon), shape).copy()


BREAKS = {
    "none": DRAWN,
    "exact head count": exact_head_count,
    "one vector for all times": one_vector_for_all_times,
}


def caught(name: str, audits: int, runs: int) -> Counter[str]:
    """In how many audits anything was called false, and by what."""
    noise.laplace_integers = BREAKS[name]
    by: Counter[str] = Counter()
    for seed in range(audits):
        found = audit(TrajectorySynthesizer(**LEAN), runs=runs, seed=seed)
        by["anything"] += found.violated
        by["tests of the noise"] += bool(found.odd_noise)
        by["attacks without the claims"] += any(
            one.violated for one in found.findings if one.attack != ALL
        )
        by["the attack by the claims"] += found.of(ALL).violated
    noise.laplace_integers = DRAWN
    return by


def row(name: str, audits: int, runs: int) -> str:
    """One line of the table."""
    by = caught(name, audits, runs)
    share = (at_most if name == "none" else at_least)(by["anything"], audits, 1 - CONFIDENCE)
    bound = f"{'at most' if name == 'none' else 'at least'} {100 * float(share):.3g} %"
    columns = ("tests of the noise", "attacks without the claims", "the attack by the claims")
    numbers = [f"{by['anything']} of {audits}", bound, *(str(by[column]) for column in columns)]
    return f"| {name} | {runs} | {' | '.join(numbers)} |"


def main() -> None:
    about = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--audits", type=int, default=300)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--break", dest="names", choices=list(BREAKS), action="append")
    parser.add_argument("--quick", action="store_true", help="two audits of each")
    args = parser.parse_args()
    print("| break | runs | called false | rate | noise | attacks | by the claims |")
    print("|---|---|---|---|---|---|---|")
    for name in args.names or BREAKS:
        print(row(name, 2 if args.quick else args.audits, args.runs), flush=True)


if __name__ == "__main__":
    main()
