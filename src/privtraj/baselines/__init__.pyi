from .base import Baseline as Baseline
from .base import Uniform as Uniform
from .hierarchy import PrivateMeasure as PrivateMeasure
from .histogram import ThresholdedHistogram as ThresholdedHistogram
from .inference import MeasureThenInference as MeasureThenInference
from .inference import NonPrivate as NonPrivate
from .marginals import MarginalSynthesizer as MarginalSynthesizer
from .mixture import ClusterMixture as ClusterMixture
