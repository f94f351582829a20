"""What a sceptic would try instead: simple measures, planned, paid and certified as all others.

Every baseline is a recipe with one verb, and what it returns is an ordinary model:

    Name(epsilon, delta, adjacency="add-remove", seed=None, ...).fit(snapshots) -> TrajectoryModel
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
