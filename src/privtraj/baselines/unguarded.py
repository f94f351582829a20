"""The one place besides the guard where records are read, for baselines that are no release.

`NonPrivate` promises nothing, and its certificate says NOT PRIVATE. `MarginalSynthesizer` brings a
mechanism of its own, whose guarantee its certificate states as another's word.
"""

from __future__ import annotations

import numpy as np

from privtraj.base.arrays import Floats
from privtraj.data.snapshots import Snapshots


def unguarded(snapshots: Snapshots) -> list[Floats]:
    """T clouds (n_i, d) of raw records. Whoever asks has left the guard, and has to say so."""
    points, bins = snapshots._rows.in_slabs(snapshots.axis.bins)
    return [points[bins == i].astype(np.float64) for i in range(snapshots.n_times)]
