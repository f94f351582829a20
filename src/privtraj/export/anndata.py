"""Paths as AnnData: one row per path and time at which it is there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from privtraj.base.errors import free_name
from privtraj.columns.kinds import Number
from privtraj.columns.precision import written_times
from privtraj.data.anndata import COORDINATE, needed
from privtraj.export.tables import PathRows

FEATURES = "X_features"  # obsm of features that are no coordinates of one


def to_anndata(paths: PathRows, basis: str | None = None) -> Any:
    """See `Paths.to_anndata`."""
    anndata = needed()
    d, frame = paths.values.shape[2], paths.to_frame()
    plain = [not paths.columns or type(paths.columns[k]) is Number for k in range(d)]
    numbers = np.flatnonzero(plain)
    names_of_numbers = [list(frame.columns[-d:])[k] for k in numbers]
    obs = frame.drop(columns=names_of_numbers)
    at = paths.rows(np.broadcast_to(np.arange(len(paths.times)), paths.values.shape[:2]))
    obs.index = [f"{path}-{k}" for path, k in zip(obs["path"], at, strict=True)]
    written = [paths.rows(paths.written(int(k))) for k in numbers]
    values = np.column_stack(written) if written else np.empty((len(obs), 0))
    features = [paths.features[k] for k in numbers]
    places = _places(features) if basis is None else {basis: list(range(len(features)))}
    obsm = {key: values[:, at] for key, at in places.items() if at}
    names = {key: [features[k] for k in at] for key, at in places.items()}
    return anndata.AnnData(obs=obs, obsm=obsm, uns={"privtraj_features": names})


def _places(features: Sequence[str]) -> dict[str, list[int]]:
    """Which features make up which obsm: "X_pca-0", "X_pca-1", ... make "X_pca"."""
    numbers: dict[str, dict[int, int]] = {}
    for k, name in enumerate(features):
        if match := COORDINATE.fullmatch(name):
            numbers.setdefault(match[1], {})[int(match[2])] = k
    places = {
        key: [at[k] for k in sorted(at)]
        for key, at in numbers.items()
        if sorted(at) == list(range(len(at)))
    }
    used = {k for at in places.values() for k in at}
    rest = [k for k in range(len(features)) if k not in used]
    return places | ({FEATURES: rest} if rest else {})


def check_h5ad(features: tuple[str, ...], bounds: Any, times: int) -> None:
    """Refuse what `write_h5ad` would."""
    needed()


def write_h5ad(paths: PathRows, path: Path) -> None:
    """Write the AnnData of paths; dates go as text, and names without slashes: HDF5 has neither."""
    data = to_anndata(paths)
    for other in data.obs.columns[2:]:
        if data.obs[other].dtype.kind == "M":
            days = data.obs[other].dt.strftime("%Y-%m-%dT%H:%M:%S").str.removesuffix("T00:00:00")
            data.obs[other] = days.astype("category")
    name = data.obs.columns[1]
    if paths.datetime:
        times = written_times(paths.numeric_times, True)
        when = paths.rows(np.broadcast_to(times, paths.values.shape[:2]))
        data.obs[name] = [str(time) for time in when]
    allowed = free_name(name.replace("/", "_"), {"path", "_index", *data.obs.columns[2:]})
    data.obs = data.obs.rename(columns={name: allowed})
    data.write_h5ad(path)
