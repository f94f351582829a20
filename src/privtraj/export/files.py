"""Paths for other programs, and as files: GeoJSON, GeoPandas, MovingPandas, AnnData.

Places are longitude and latitude in degrees, WGS 84, unless another reference system is named;
GeoJSON knows no other.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import date, datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Ints
from privtraj.base.errors import InputError, Said, free_name
from privtraj.base.files import atomic_path
from privtraj.base.formats import PATHS, extra, format_of
from privtraj.base.space import as_user_times, moment, to_unit, written_times
from privtraj.columns.kinds import Category, Number, text_of
from privtraj.columns.precision import DEGREES as STEP
from privtraj.columns.precision import axes
from privtraj.export.tables import PathRows, write_as

if TYPE_CHECKING:
    from privtraj.domain.domain import Plot

DEGREES = "EPSG:4326"
UNITS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400, "weeks": 604_800}

_DIGITS = 6  # of degrees: a tenth of a metre
_MAPS = ("maps of paths", "privtraj[geo]")  # what needs more packages, and how to get them


def _check_times(count: int) -> None:
    if count < 2:
        more = Said("sample the paths at more times", "raise --at")
        raise InputError("a line on a map needs at least two times: ", more)


def check_degrees(
    features: tuple[str, ...], at: tuple[int, int], values: NDArray[Any], hint: str | Said = ""
) -> None:
    """Refuse values (..., d), or public bounds, that are no longitudes and latitudes."""
    for k, limit, what in zip(at, (180.0, 90.0), ("longitude", "latitude"), strict=True):
        if not (np.abs(values[..., k]) <= limit).all():
            raise InputError(
                f"'{features[k]}' cannot be a {what} in degrees, as it goes beyond "
                f"[-{limit:g}, {limit:g}]: a map needs degrees",
                hint,
            )


def _places(paths: PathRows, x: str | None, y: str | None, hint: str | Said = "") -> Any:
    """Which features are longitude and latitude, and whether they can be, where they are known."""
    at = axes(paths.features, x, y)
    rows = paths.rows(paths.values)
    for k in at:
        if paths.columns and paths.columns[k].missing:
            rows = rows[~np.isnan(rows[:, k])]
    check_degrees(paths.features, at, rows, hint)
    return at


def _located(paths: PathRows, x: str | None, y: str | None) -> list[tuple[list[float], Any]]:
    """The rows of the long table that have a place: the position, and all else as JSON writes it,
    dates as text and None where it is missing."""
    at = _places(paths, x, y)
    steps = {paths.features[k]: paths.precision.get(paths.features[k], STEP) for k in at}
    fine = {**paths.precision, **{name: max(step, STEP) for name, step in steps.items()}}
    table = replace(paths, precision=fine, zone={}).to_arrow()  # JSON has moments in UTC
    time, where = table.column_names[1], [table.column_names[k - len(paths.features)] for k in at]
    units = {"timestamp[ms]": "milliseconds", "timestamp[us]": "microseconds"}
    digits, found = units.get(str(table.schema.types[1]), "seconds"), []
    for row in table.to_pylist():
        position = [row.pop(name) for name in where]
        if None in position or np.isnan(position).any():
            continue
        for name, value in row.items():
            if name == time and isinstance(value, datetime):
                row[name] = f"{value.isoformat(timespec=digits)}Z"
            elif isinstance(value, date):
                row[name] = value.isoformat()
            elif isinstance(value, float) and np.isnan(value):
                row[name] = None
        found.append(([round(value, _DIGITS) for value in position], row))
    return found


def _collection(kind: str, parts: Iterable[tuple[Any, dict[str, Any]]]) -> dict[str, Any]:
    """GeoJSON of coordinates and their properties."""
    features = [
        {"type": "Feature", "geometry": {"type": kind, "coordinates": at}, "properties": known}
        for at, known in parts
    ]
    return {"type": "FeatureCollection", "features": features}


def to_geojson(paths: PathRows, x: str | None = None, y: str | None = None) -> dict[str, Any]:
    """See `Paths.to_geojson`."""
    order = np.argsort(paths.numeric_times, kind="stable")
    parts = {"values": paths.values[:, order], "present": paths.present[:, order]}
    rows = _located(replace(paths, numeric_times=paths.numeric_times[order], **parts), x, y)
    _check_times(len(order))
    lines, walked = [], paths.ground
    shown = tuple(paths.features[k] for k in axes(paths.features, x, y))
    if walked is not None and shown != (walked.domain.x, walked.domain.y):
        walked = None  # a map of other features than those of the domain
    for path, own in groupby(rows, lambda located: located[1]["path"]):
        places, known = zip(*own, strict=True)
        if len(places) < 2:
            continue  # a line has two positions at least
        _, time, *others = known[0]
        if walked is not None:
            places, known = _by_corners(walked, places, known, time)
        made: dict[str, Any] = {"path": path, "times": [row[time] for row in known]}
        parents = others[:1] if paths.parent is not None else []
        for name in others[len(parents) :]:
            made[free_name(name, made)] = [row[name] for row in known]
        for name in parents:
            made[free_name(name, made)] = known[0][name]
        lines.append((list(places), made))
    return _collection("LineString", lines)


def _by_corners(
    plot: Plot, places: Sequence[list[float]], known: Sequence[dict[str, Any]], time: str
) -> tuple[tuple[list[float], ...], tuple[dict[str, Any], ...]]:
    """Positions and rows of one path with the corners of its ways in between, at the times at which
    they are passed; all else is as at the reading before."""
    unit = plot.ground.nearest(to_unit(np.array(places), plot.bounds))
    ways = plot.ground.ways(unit[:-1], unit[1:])
    line, rows = [places[0]], [known[0]]
    for k, corners in enumerate(ways.corners):
        legs = np.hypot(*np.diff(corners, axis=0).T)
        turns = np.flatnonzero((np.cumsum(legs) < legs.sum()) & ~ways.apart[k])
        shares = np.cumsum(legs)[turns] / max(float(legs.sum()), 1e-300)
        corner_places = np.round(plot.in_data_units(corners[1:][turns]), _DIGITS)
        for share, place in zip(shares.tolist(), corner_places.tolist(), strict=True):
            line.append(place)
            rows.append(known[k] | {time: _between(known[k][time], known[k + 1][time], share)})
        line.append(places[k + 1])
        rows.append(known[k + 1])
    return tuple(line), tuple(rows)


def _between(start: Any, end: Any, share: float) -> Any:
    """The time at this share of the way, as the readings write theirs."""
    if not isinstance(start, str):
        return start + share * (end - start)
    first, last = np.array([start[:-1], end[:-1]], "datetime64[us]").astype(np.int64).tolist()
    return f"{np.datetime64(round(first + share * (last - first)), 'us')}Z"


def to_trips(paths: PathRows, x: str | None = None, y: str | None = None) -> dict[str, Any]:
    """The lines with positions [longitude, latitude, 0, seconds since 1970], which is how the trip
    layer of kepler.gl knows that they move. RFC 7946 advises against a fourth number."""
    if not paths.datetime:
        raise InputError(
            f"'{paths.time_name}' holds numbers and kepler.gl plays dates: choose .geojson, or fit "
            "with a column of dates"
        )
    lines = to_geojson(paths, x, y)
    for line in lines["features"]:
        said = [moment.removesuffix("Z") for moment in line["properties"]["times"]]
        seconds = np.array(said, dtype="datetime64[us]").astype(np.int64) / 1e6
        pairs = zip(line["geometry"]["coordinates"], seconds.tolist(), strict=True)
        line["geometry"]["coordinates"] = [[*position, 0, second] for position, second in pairs]
    return lines


def to_points(paths: PathRows, x: str | None = None, y: str | None = None) -> dict[str, Any]:
    """A point for each row of the long table, with its time as one value: a field of dates, by
    which the temporal controller of QGIS, and others that filter by a field, play them."""
    return _collection("Point", _located(paths, x, y))


def to_geopandas(
    paths: PathRows, x: str | None = None, y: str | None = None, crs: str = DEGREES
) -> Any:
    """See `Paths.to_geopandas`."""
    geopandas = extra("geopandas", *_MAPS)
    hint = Said(", or crs=, which says what the numbers are", "")
    at = _places(paths, x, y, hint) if crs == DEGREES else axes(paths.features, x, y)
    points = geopandas.points_from_xy(*(paths.rows(paths.written(k)) for k in at))
    frame = paths.to_frame()
    frame = frame.rename(columns={"geometry": free_name("geometry", frame.columns)})
    return geopandas.GeoDataFrame(frame, geometry=points, crs=crs)


def to_movingpandas(
    paths: PathRows,
    x: str | None = None,
    y: str | None = None,
    crs: str = DEGREES,
    origin: Any = None,
    unit: str = "seconds",
) -> Any:
    """See `Paths.to_movingpandas`."""
    movingpandas = extra("movingpandas", *_MAPS)
    frame = to_geopandas(paths, x, y, crs)
    name = frame.columns[1]
    if paths.datetime and origin is not None:
        raise InputError("the times are dates already: leave out origin=")
    if not paths.datetime:
        if origin is None:
            raise InputError(
                f"'{paths.time_name}' holds numbers and MovingPandas needs dates: say from when "
                "they count, and in what, such as origin='2024-01-01', unit='hours'"
            )
        if unit not in UNITS:
            raise InputError(f"unit must be one of {', '.join(UNITS)}, not '{unit}'")
        start, dated = moment(origin, "origin")
        if not dated:
            raise InputError("origin must be a date such as '2024-01-01'")
        dates = as_user_times(start + paths.numeric_times * UNITS[unit], True)
        frame[name] = paths.rows(np.broadcast_to(dates, paths.values.shape[:2]))
    return movingpandas.TrajectoryCollection(frame, traj_id_col="path", t=name)


# AnnData ---------------------------------------------------------------------------------------


TRANSITIONS = "T_fwd"  # as CellRank calls the transition matrix of a forward process


def to_anndata(
    paths: PathRows, basis: str | None = None, fates: Callable[[Any], Any] | None = None
) -> Any:
    """See `Paths.to_anndata`."""
    from privtraj.data.tables import anndata_needed

    anndata = anndata_needed()
    d, frame = paths.values.shape[2], replace(paths, zone={}).to_frame()  # a file has no zones
    plain = [not paths.columns or paths.columns[k].kind == Number.kind for k in range(d)]
    numbers = np.flatnonzero(plain)
    names_of_numbers = [list(frame.columns[-d:])[k] for k in numbers]
    obs = frame.drop(columns=names_of_numbers)
    at = paths.rows(np.broadcast_to(np.arange(len(paths.times)), paths.values.shape[:2]))
    obs.index = [f"{path}-{k}" for path, k in zip(obs["path"], at, strict=True)]
    written = [paths.rows(paths.written(int(k))) for k in numbers]
    values = np.column_stack(written) if written else np.empty((len(obs), 0))
    features = [paths.features[k] for k in numbers]
    places = _obsm(features) if basis is None else {basis: list(range(len(features)))}
    obsm = {key: values[:, at] for key, at in places.items() if at}
    uns: dict[str, Any] = {
        "privtraj_features": {key: [features[k] for k in at] for key, at in places.items()},
        "privtraj_growth": {"times": paths.numeric_times, "cells": paths.numbers},
    }
    matrix, heirs, last = _transitions(paths)
    path = obs["path"].to_numpy()
    if paths.lives is not None:
        obs[free_name("descendants", obs.columns)] = heirs
    changing = {
        k: [text_of(label) for label in c.labels]
        for k, c in enumerate(paths.columns)
        if isinstance(c, Category) and not c.fixed
    }
    if fates is not None or changing:
        ends = paths.values[np.arange(len(paths)), last]
        if fates is not None:
            named = np.asarray(fates(ends))
        else:
            k, labels = next(iter(changing.items()))
            named = np.array(labels)[ends[:, k].astype(int)]
        if named.shape != (len(paths),):
            raise InputError(f"fates must name one for each of the {len(paths)} paths")
        obs[free_name("fate", obs.columns)] = named.astype(str)[path]
        there = paths.present[:, int(np.argmax(paths.numeric_times))]
        final, counts = np.unique(named.astype(str)[there], return_counts=True)
        uns["privtraj_fates"] = dict(
            zip(final.tolist(), (counts / counts.sum()).tolist(), strict=True)
        )
        obs = obs.astype({obs.columns[-1]: "category"})
    return anndata.AnnData(obs=obs, obsm=obsm, uns=uns, obsp={TRANSITIONS: matrix})


def _transitions(paths: PathRows) -> tuple[Any, Ints, Ints]:
    """From each of the r rows to its row at the next time, and to those of daughters who were born
    in between, in equal parts, (r, r) sparse; whoever has none stays. Then how many rows at the
    last time come from each (r,), and at which time each path ends (n,)."""
    from scipy.sparse import csr_matrix

    order = np.argsort(paths.numeric_times, kind="stable")
    there, (n, q) = paths.present[:, order], paths.present.shape
    row = (np.cumsum(paths.present).reshape(n, q) - 1)[:, order]
    first = np.argmax(there, axis=1)
    above = np.full(n, -1) if paths.parent is None else paths.parent.copy()
    for _ in range(n):  # to the nearest ancestor who is there before a daughter
        mothers = np.flatnonzero((above >= 0) & (first > 0) & there.any(axis=1))
        away = mothers[~there[above[mothers], first[mothers] - 1]]
        if not len(away):
            break
        above[away] = paths.parent[above[away]]  # type: ignore[index]
    heirs, pairs = np.zeros(int(there.sum()), np.int64), []
    heirs[row[there[:, -1], -1]] = 1
    for k in range(q - 1, 0, -1):
        stay = np.flatnonzero(there[:, k - 1] & there[:, k])
        born = mothers[first[mothers] == k]
        born = born[above[born] >= 0]
        before = np.concatenate([row[stay, k - 1], row[above[born], k - 1]])
        after = np.concatenate([row[stay, k], row[born, k]])
        np.add.at(heirs, before, heirs[after])
        pairs.append(np.stack([before, after]))
    edges = np.concatenate([np.empty((2, 0), np.int64), *pairs], axis=1)
    alone = np.setdiff1d(np.arange(len(heirs)), edges[0])
    edges = np.concatenate([edges, np.stack([alone, alone])], axis=1)
    share = 1 / np.bincount(edges[0], minlength=len(heirs))[edges[0]]
    matrix = csr_matrix((share, tuple(edges)), shape=(len(heirs), len(heirs)))
    return matrix, heirs, order[q - 1 - np.argmax(there[:, ::-1], axis=1)]


def _obsm(features: Sequence[str]) -> dict[str, list[int]]:
    """Which features make up which obsm: "X_pca-0", "X_pca-1", ... make "X_pca", and those that are
    no coordinates of one "X_features"."""
    from privtraj.data.tables import COORDINATE

    numbers: dict[str, dict[int, int]] = {}
    for k, name in enumerate(features):
        if match := COORDINATE.fullmatch(name):
            numbers.setdefault(match[1], {})[int(match[2])] = k
    whole = {key: at for key, at in numbers.items() if sorted(at) == list(range(len(at)))}
    places = {key: [at[k] for k in sorted(at)] for key, at in whole.items()}
    used = {k for at in places.values() for k in at}
    rest = [k for k in range(len(features)) if k not in used]
    return places | ({"X_features": rest} if rest else {})


def write_h5ad(paths: PathRows, path: Path) -> None:
    """Write the AnnData of paths; dates go as text, and names without slashes: HDF5 has neither."""
    data = to_anndata(paths)
    for other in data.obs.columns[2:]:
        if data.obs[other].dtype.kind == "M":
            days = data.obs[other].dt.strftime("%Y-%m-%dT%H:%M:%S").str.removesuffix("T00:00:00")
            data.obs[other] = days.astype("category")
    name = data.obs.columns[1]
    if paths.datetime:
        times = written_times(paths.numeric_times, True).astype(str).astype(object)
        data.obs[name] = paths.rows(np.broadcast_to(times, paths.values.shape[:2]))
    allowed = free_name(name.replace("/", "_"), {"path", "_index", *data.obs.columns[2:]})
    data.obs = data.obs.rename(columns={name: allowed})
    data.write_h5ad(path)


# Files -----------------------------------------------------------------------------------------


def write_paths(paths: PathRows, path: str | os.PathLike[str], force: bool = False) -> None:
    """See `Paths.save`."""
    kind = format_of(Path(path), PATHS).name
    with atomic_path(path, force) as temporary:
        if kind in _GEOJSON:
            text = json.dumps(_GEOJSON[kind](paths), ensure_ascii=False, allow_nan=False)
            temporary.write_text(text + "\n", encoding="utf-8")
        elif kind == "geoparquet":
            to_geopandas(paths).to_parquet(temporary, index=False)
        elif kind == "h5ad":
            write_h5ad(paths, temporary)
        else:
            write_as(kind, paths.to_arrow(), temporary)


def check_paths(path: Path, features: tuple[str, ...], bounds: Any, times: int) -> None:
    """Refuse now what `write_paths` would refuse later: a map without places, a missing package.

    bounds: (d, 2) public limits of the features.  times: how many there are on each path.
    """
    kind = format_of(path, PATHS).name
    if kind in (*_GEOJSON, "geoparquet"):
        check_degrees(features, axes(features), np.transpose(bounds))
    if kind in ("geojson", "trips"):
        _check_times(times)
    if kind == "geoparquet":
        extra("geopandas", *_MAPS)
    elif kind == "h5ad":
        from privtraj.data.tables import anndata_needed

        anndata_needed()


_GEOJSON = {"geojson": to_geojson, "trips": to_trips, "points": to_points}
