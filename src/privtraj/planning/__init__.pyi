from .forecast import Forecast as Forecast
from .planner import plan as plan
