from .base import Baseline as Baseline
from .base import Uniform as Uniform
from .counted import PrivateMeasure as PrivateMeasure
from .counted import ThresholdedHistogram as ThresholdedHistogram
from .inference import MeasureThenInference as MeasureThenInference
from .inference import NonPrivate as NonPrivate
from .marginals import MarginalSynthesizer as MarginalSynthesizer
from .mixture import ClusterMixture as ClusterMixture
