"""What a sceptic would try instead: simple recipes through the same guard, ledger and certificate.

Every baseline is a class of settings with one verb, and what it returns is an ordinary model:

    Name(epsilon, delta, adjacency="add-remove", seed=None, ...).fit(snapshots) -> TrajectoryModel
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
