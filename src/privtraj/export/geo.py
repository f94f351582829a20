"""Paths on a map: GeoJSON, GeoPandas and GeoParquet, MovingPandas.

Places are longitude and latitude in degrees, WGS 84, unless another reference system is named;
GeoJSON knows no other.
"""

from __future__ import annotations

import json
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError, Said, free_name
from privtraj.base.formats import extra
from privtraj.base.space import moment
from privtraj.columns.kinds import Number
from privtraj.columns.precision import DEGREES as DEGREES_STEP
from privtraj.columns.precision import axes, written_times
from privtraj.export.tables import PathRows
from privtraj.export.typed import python_values

DEGREES = "EPSG:4326"
UNITS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400, "weeks": 604_800}

_LIMITS = (180.0, 90.0)
_DIGITS = 6  # of degrees: a tenth of a metre


def check_geojson(features: tuple[str, ...], bounds: Any, times: int) -> None:
    """Refuse what `write_geojson` would; bounds: (d, 2) public limits."""
    check_degrees(features, axes(features), np.transpose(bounds))
    _check_times(times)


def check_points(features: tuple[str, ...], bounds: Any, times: int) -> None:
    """Refuse what `write_points` would; bounds: (d, 2) public limits."""
    check_degrees(features, axes(features), np.transpose(bounds))


def check_geoparquet(features: tuple[str, ...], bounds: Any, times: int) -> None:
    """Refuse what `write_geoparquet` would; bounds: (d, 2) public limits."""
    check_points(features, bounds, times)
    _needed("geopandas")


def _check_times(count: int) -> None:
    if count < 2:
        raise InputError(
            "a line on a map needs at least two times: ",
            Said("sample the paths at more times", "raise --at"),
        )


def to_geojson(paths: PathRows, x: str | None = None, y: str | None = None) -> dict[str, Any]:
    """See `Paths.to_geojson`."""
    at = axes(paths.features, x, y)
    check_degrees(paths.features, at, _known(paths, at))
    _check_times(paths.values.shape[1])
    order = np.argsort(paths.numeric_times, kind="stable")
    times = _moments(paths)[order]
    names: dict[str, int] = {}  # of the other features
    for k in set(range(len(paths.features))) - set(at):
        names[free_name(paths.features[k], {"path", "times", *names})] = k
    columns = paths.columns or (None,) * len(paths.features)
    values = paths.values[:, order]
    places = np.stack([_degrees(paths, k)[:, order] for k in at], axis=-1)
    others = {
        name: python_values(columns[k], paths.written(k)[:, order]) for name, k in names.items()
    }
    placed = paths.present[:, order] & ~np.isnan(values[..., at]).any(axis=-1)
    lines: list[dict[str, Any]] = []
    for path, there in enumerate(placed):
        line = places[path, there]
        if len(line) < 2:
            continue  # a line has two positions at least
        other = {name: known[path, there].tolist() for name, known in others.items()}
        place = {"type": "LineString", "coordinates": line.tolist()}
        known = {"path": path, "times": times[there].tolist(), **other}
        if paths.parent is not None:
            known[free_name("parent", known)] = int(paths.parent[path])
        lines.append({"type": "Feature", "geometry": place, "properties": known})
    return {"type": "FeatureCollection", "features": lines}


def _moments(paths: PathRows) -> NDArray[Any]:
    """(q,) times for JSON: numbers, days, or ISO 8601 in UTC."""
    times = written_times(paths.numeric_times, paths.datetime)
    utc = "Z" * (paths.datetime and times.dtype != "datetime64[D]")
    return np.array([f"{t}{utc}" if paths.datetime else float(t) for t in times], dtype=object)


def _degrees(paths: PathRows, k: int) -> Floats:
    """(n, q) of a place, with as many digits as GeoJSON has."""
    if not paths.columns:
        return np.round(paths.values[..., k], 6)
    column = paths.columns[k]
    assert isinstance(column, Number)
    step = paths.precision.get(paths.features[k], DEGREES_STEP)
    return column.written(paths.values[..., k], max(step, DEGREES_STEP))


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
        place = line["geometry"]
        place["coordinates"] = [
            [*position, 0, second]
            for position, second in zip(place["coordinates"], seconds.tolist(), strict=True)
        ]
    return lines


def to_points(paths: PathRows, x: str | None = None, y: str | None = None) -> dict[str, Any]:
    """A point for each row of the long table, with its time as one value: a field of dates, by
    which the temporal controller of QGIS, and others that filter by a field, play them."""
    at = axes(paths.features, x, y)
    check_degrees(paths.features, at, _known(paths, at))
    table = paths.to_arrow()
    names = table.column_names
    where = [names[-len(paths.features) + k] for k in at]
    points = []
    for row in table.to_pylist():
        position = [row.pop(name) for name in where]
        if None in position or np.isnan(position).any():
            continue
        moment = row[names[1]]
        utc = "Z" * isinstance(moment, datetime)  # and nothing behind a day
        row[names[1]] = f"{moment.isoformat()}{utc}" if paths.datetime else moment
        known = {name: _plain(value) for name, value in row.items()}
        place = {"type": "Point", "coordinates": [round(value, _DIGITS) for value in position]}
        points.append({"type": "Feature", "geometry": place, "properties": known})
    return {"type": "FeatureCollection", "features": points}


def _plain(value: Any) -> Any:
    """As JSON has it: dates as text, nothing for what is missing."""
    if isinstance(value, date):
        return value.isoformat()
    return None if isinstance(value, float) and np.isnan(value) else value


def _known(paths: PathRows, at: tuple[int, int]) -> NDArray[Any]:
    """Rows (r, d) of the long table but those that lack a place, where that may be missing."""
    rows = paths.rows(paths.values)
    for k in at:
        if paths.columns and paths.columns[k].missing:
            rows = rows[~np.isnan(rows[:, k])]
    return rows


def check_degrees(
    features: tuple[str, ...], at: tuple[int, int], values: NDArray[Any], hint: str | Said = ""
) -> None:
    """Refuse values (..., d), or public bounds, that are no longitudes and latitudes."""
    for k, limit, what in zip(at, _LIMITS, ("longitude", "latitude"), strict=True):
        if not (np.abs(values[..., k]) <= limit).all():
            raise InputError(
                f"'{features[k]}' cannot be a {what} in degrees, as it goes beyond "
                f"[-{limit:g}, {limit:g}]: a map needs degrees",
                hint,
            )


def to_geopandas(
    paths: PathRows, x: str | None = None, y: str | None = None, crs: str = DEGREES
) -> Any:
    """See `Paths.to_geopandas`."""
    geopandas = _needed("geopandas")
    at = axes(paths.features, x, y)
    if crs == DEGREES:
        hint = Said(", or crs=, which says what the numbers are", "")
        check_degrees(paths.features, at, _known(paths, at), hint)
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
    movingpandas = _needed("movingpandas")
    frame = to_geopandas(paths, x, y, crs)
    name = frame.columns[1]
    if not paths.datetime:
        dates = _dated(paths, origin, unit)
        frame[name] = paths.rows(np.broadcast_to(dates, paths.values.shape[:2]))
    elif origin is not None:
        raise InputError("the times are dates already: leave out origin=")
    return movingpandas.TrajectoryCollection(frame, traj_id_col="path", t=name)


def _dated(paths: PathRows, origin: Any, unit: str) -> Any:
    if origin is None:
        raise InputError(
            f"'{paths.time_name}' holds numbers and MovingPandas needs dates: say from when they "
            "count, and in what, such as origin='2024-01-01', unit='hours'"
        )
    if unit not in UNITS:
        raise InputError(f"unit must be one of {', '.join(UNITS)}, not '{unit}'")
    start, dated = moment(origin, "origin")
    if not dated:
        raise InputError("origin must be a date such as '2024-01-01'")
    micros = np.rint((start + paths.numeric_times * UNITS[unit]) * 1e6)
    return micros.astype("datetime64[us]")


def _needed(module: str) -> Any:
    return extra(module, "maps of paths", "privtraj[geo]")


def write_geojson(paths: PathRows, path: Path) -> None:
    _write(to_geojson(paths), path)


def write_trips(paths: PathRows, path: Path) -> None:
    _write(to_trips(paths), path)


def write_points(paths: PathRows, path: Path) -> None:
    _write(to_points(paths), path)


def _write(collection: dict[str, Any], path: Path) -> None:
    text = json.dumps(collection, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def write_geoparquet(paths: PathRows, path: Path) -> None:
    to_geopandas(paths).to_parquet(path, index=False)
