from .base import Reference as Reference
from .base import Scale as Scale
from .brownian import Brownian as Brownian
from .drift import Drift as Drift
from .inertia import Inertia as Inertia
from .learned import Learned as Learned
from .ornstein_uhlenbeck import OrnsteinUhlenbeck as OrnsteinUhlenbeck
