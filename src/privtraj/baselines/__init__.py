"""What a sceptic would try instead: simple recipes through the same guard, ledger and certificate.

Every baseline is a class of settings with one verb, and what it returns is an ordinary model:

    Name(epsilon, delta, adjacency="add-remove", seed=None, ...).fit(snapshots) -> TrajectoryModel
"""

from privtraj.baselines.base import Baseline
from privtraj.baselines.hierarchy import PrivateMeasure
from privtraj.baselines.histogram import ThresholdedHistogram
from privtraj.baselines.inference import MeasureThenInference, NonPrivate
from privtraj.baselines.marginals import MarginalSynthesizer
from privtraj.baselines.mixture import ClusterMixture
from privtraj.baselines.uniform import Uniform

__all__ = [
    "Baseline",
    "ClusterMixture",
    "MarginalSynthesizer",
    "MeasureThenInference",
    "NonPrivate",
    "PrivateMeasure",
    "ThresholdedHistogram",
    "Uniform",
]
