"""Paths: synthetic people who can be read at any continuous time."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from privtraj.base.errors import Arg, InputError, either
from privtraj.export import files as export
from privtraj.export.tables import PathRows

_BLOCK = 2**19  # numbers of people who are worked on at once


class Paths(PathRows):
    """n synthetic people at q times. values: (n, q, d) in data units, inside the public bounds."""

    def __repr__(self) -> str:
        n, q, _ = self.values.shape
        return f"Paths({n} people at {q} times; {', '.join(self.features)})"

    def to_polars(self) -> Any:
        """The long table as a polars DataFrame."""
        try:
            import polars
        except ImportError:
            raise InputError("polars is needed for to_polars: run pip install polars") from None
        table = self.to_arrow()
        made: Any = polars.from_arrow(table)
        for name in self.kinds(table):
            if made.schema[name] == polars.Categorical:  # polars forgets values that nobody has
                values = table[name].chunk(0).dictionary.to_pylist()
                made = made.with_columns(polars.col(name).cast(polars.Enum(values)))
        return made

    def to_anndata(
        self, basis: str | None = None, fates: Callable[[Any], Any] | None = None
    ) -> Any:
        """An AnnData with one row per path and time at which it is there.

        obs: path and time, with branching parent, and features of other types than numbers; rows
        named "path-k" for the k-th time.
        obsm: numbers named like "X_pca-0", "X_pca-1", ... become obsm["X_pca"], all others
        obsm["X_features"]; `basis` puts all of them into obsm[basis].
        obsp["T_fwd"]: transition probabilities as CellRank has them: from each row to that of the
        next time, and to daughters born in between; whoever has none stays.
        fates: a function of values (n, d) at the end of each path that names its fate (n,), without
        one the first category that changes: obs["fate"]. With growth, obs["descendants"] at the
        last time.
        uns: "privtraj_features" of each obsm, "privtraj_growth", cells at each time, and
        "privtraj_fates", shares of them at the last.
        """
        return export.to_anndata(self, basis, fates)

    def to_geojson(
        self, x: str | None = None, y: str | None = None, kind: str = "lines"
    ) -> dict[str, Any]:
        """A GeoJSON FeatureCollection (RFC 7946): one LineString per path, along time, of those
        who are there at two times at least.

        x, y: features that are longitude and latitude in degrees; by default guessed by name.
        kind: "lines"; "trips", with the time as a fourth number of each position, for the trip
            layer of kepler.gl; or "points", one for each path and time, for QGIS.
        Properties: "path", "times" (one per position: ISO 8601 in UTC, or numbers, as Leaflet's
        TimeDimension and folium's TimestampedGeoJson read them), and other features, one value per
        position. Points have the columns of the long table.
        """
        kinds = {"lines": export.to_geojson, "trips": export.to_trips, "points": export.to_points}
        if kind not in kinds:
            raise InputError(Arg("kind"), f" must be {either(kinds)}, not '{kind}'")
        return kinds[kind](self, x, y)

    def to_geopandas(
        self, x: str | None = None, y: str | None = None, crs: str = "EPSG:4326"
    ) -> Any:
        """The long table as a GeoDataFrame with a point in each row.

        x, y: features that are longitude and latitude, or x and y of another `crs`; by default
            guessed by name (lon, longitude, lng, x; lat, latitude, y).
        crs: degrees by default, which is checked.
        """
        return export.to_geopandas(self, x, y, crs)

    def to_movingpandas(
        self,
        x: str | None = None,
        y: str | None = None,
        crs: str = "EPSG:4326",
        *,
        origin: Any = None,
        unit: str = "seconds",
    ) -> Any:
        """A MovingPandas TrajectoryCollection, one trajectory per path.

        origin, unit: where times are numbers, the public date from which they count, and in what:
            seconds, minutes, hours, days or weeks.
        """
        return export.to_movingpandas(self, x, y, crs, origin, unit)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the paths, whole or not at all, in the format that the name ends in.

        The long table: .csv, .csv.gz, .parquet, .arrow, .feather; with a point in each row:
        .geoparquet, .points.geojson; as lines: .geojson, .trips.geojson; as AnnData: .h5ad.
        """
        export.write_paths(self, path, force)


def fill_in_blocks(
    fill: Callable[[slice, np.random.Generator], None],
    people: int,
    numbers: int,
    rng: np.random.Generator,
) -> None:
    """Have every block of people filled on some core, with a generator of its own.

    numbers: of one person. A block fits a core's cache; what it gets does not depend on the cores.
    """
    size = max(1, _BLOCK // numbers)
    blocks = [slice(first, min(first + size, people)) for first in range(0, people, size)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        apply = pool.map if len(blocks) > 1 else map  # one is not worth a thread
        list(apply(fill, blocks, rng.spawn(len(blocks))))
