"""How good are synthetic people? Scores with definitions, each read against a floor and a ceiling.

All of them compare with raw data, so none of their values is private: they are for the people who
may see the data, not for release. Definitions and how to read them: docs/metrics.md.
"""

from privtraj.metrics.cells import jensen_shannon
from privtraj.metrics.classifier import two_sample_auc
from privtraj.metrics.copies import (
    Memorisation,
    memorisation,
    nearest_distances,
    path_memorisation,
)
from privtraj.metrics.energy import energy_distance
from privtraj.metrics.evaluation import Evaluation, evaluate
from privtraj.metrics.held_out import (
    HeldOut,
    displacement_interpolation,
    held_out_w2,
    leave_one_out,
)
from privtraj.metrics.mobility import density_jsd, hotspot_ndcg, kendall_tau, range_query_error
from privtraj.metrics.path_space import (
    PathScore,
    path_score,
    path_wasserstein2,
    randomly_coupled,
)
from privtraj.metrics.people import Worth, real_people_error, worth, worth_interval
from privtraj.metrics.sliced import sliced_wasserstein2
from privtraj.metrics.table import Score, cloud_scores, path_scores
from privtraj.metrics.transport import (
    average_squared_w2,
    squared_w2_per_time,
    squared_wasserstein2,
    wasserstein1,
    wasserstein2,
)
from privtraj.metrics.trips import diameter_jsd, length_jsd, pattern_f1, trip_jsd

__all__ = [
    "Evaluation",
    "HeldOut",
    "Memorisation",
    "PathScore",
    "Score",
    "Worth",
    "average_squared_w2",
    "cloud_scores",
    "density_jsd",
    "diameter_jsd",
    "displacement_interpolation",
    "energy_distance",
    "evaluate",
    "held_out_w2",
    "hotspot_ndcg",
    "jensen_shannon",
    "kendall_tau",
    "leave_one_out",
    "length_jsd",
    "memorisation",
    "nearest_distances",
    "path_memorisation",
    "path_score",
    "path_scores",
    "path_wasserstein2",
    "pattern_f1",
    "randomly_coupled",
    "range_query_error",
    "real_people_error",
    "sliced_wasserstein2",
    "squared_w2_per_time",
    "squared_wasserstein2",
    "trip_jsd",
    "two_sample_auc",
    "wasserstein1",
    "wasserstein2",
    "worth",
    "worth_interval",
]
