"""Estimates are kept from one run to the next, by the model they are about: a report need not wait
for what a fit has found already. They hold nothing but what follows from a released model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from privtraj.assess.quality.estimate import REFITS, Quality, estimated_quality
from privtraj.base import __version__, files
from privtraj.base.errors import InputError
from privtraj.model.model import TrajectoryModel

FORMAT = 1  # of the kept files


def quality_of(
    model: TrajectoryModel, progress: Callable[[int, int], None] | None = None
) -> Quality | None:
    """The estimate for a model, kept or made now; None for one that no fit of ours has made."""
    found = _kept(model)
    if found is None:
        found = estimated_quality(model, progress=progress)
        if found is not None:
            _keep(model, found)
    return found


def _file_of(model: TrajectoryModel) -> Path:
    name = f"{model.sha256[:32]}-{FORMAT}-{REFITS}-{__version__}.json"
    return files.cache_folder("quality") / name


def _kept(model: TrajectoryModel) -> Quality | None:
    """What was kept; None if there is nothing that can be read."""
    try:
        return Quality.from_dict(json.loads(_file_of(model).read_text("utf-8")))
    except (OSError, RuntimeError, KeyError, TypeError, ValueError, AttributeError):
        return None  # there is none, or no home, or it is damaged


def _keep(model: TrajectoryModel, found: Quality) -> None:
    """Keep it for the next time, if there is a place for it."""
    try:
        path = _file_of(model)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        files.write_text(f"{json.dumps(found.to_dict(), allow_nan=False)}\n", path, force=True)
    except (OSError, RuntimeError, InputError):
        return
