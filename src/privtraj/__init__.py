"""privtraj: private synthetic trajectories from one time-stamped record per person."""

import lazy_loader

from privtraj.base import __version__ as __version__

# Imported on first use, so that `import privtraj` and `privtraj --help` answer at once.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
