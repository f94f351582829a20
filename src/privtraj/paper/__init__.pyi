from .sampled import SampledSynthesizer as SampledSynthesizer
from .synthesizer import PaperSynthesizer as PaperSynthesizer
from .synthesizer import Phase as Phase
from .synthesizer import TimeSample as TimeSample
from .synthesizer import WarmStart as WarmStart
