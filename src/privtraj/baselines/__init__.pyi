from .base import Baseline as Baseline
from .base import ClusterMixture as ClusterMixture
from .base import Uniform as Uniform
from .counted import NonPrivate as NonPrivate
from .counted import ThresholdedHistogram as ThresholdedHistogram
