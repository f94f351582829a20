from .forecast import Forecast as Forecast
from .mixed import MixedForecast as MixedForecast
from .planner import plan as plan
