"""Reference processes: how people would move if nothing but their law at each time were known."""

from privtraj.reference.base import Reference as Reference
from privtraj.reference.base import Scale as Scale
from privtraj.reference.brownian import Brownian as Brownian
from privtraj.reference.drift import Drift as Drift
from privtraj.reference.inertia import Inertia as Inertia
from privtraj.reference.learned import Learned as Learned
from privtraj.reference.ornstein_uhlenbeck import OrnsteinUhlenbeck as OrnsteinUhlenbeck
