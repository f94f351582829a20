"""Paths to files, in the format that the name of the file says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from privtraj.export.rows import PathRows
from privtraj.files import atomic_path
from privtraj.formats import PATHS, format_of, load


def write_paths(paths: PathRows, path: str | os.PathLike[str], force: bool = False) -> None:
    """See `Paths.save`."""
    path = Path(path)
    kind = format_of(path, PATHS)
    with atomic_path(path, force) as temporary:
        if kind.write_paths:
            load(kind.write_paths)(paths, temporary)
        else:
            load(kind.write_table)(paths.to_arrow(), temporary)


def check_paths(path: Path, features: tuple[str, ...], bounds: Any, times: int) -> None:
    """Refuse now what `write_paths` would refuse later: a map without places, a missing package.

    bounds: (d, 2) public limits of the features.  times: how many there are on each path.
    """
    check = format_of(path, PATHS).check_paths
    if check:
        load(check)(features, bounds, times)
