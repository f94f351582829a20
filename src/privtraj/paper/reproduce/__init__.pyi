from .registry import NAMES as NAMES
from .registry import check_strokes as check_strokes
from .registry import reproduce as reproduce
from .result import Options as Options
from .result import Reproduction as Reproduction
