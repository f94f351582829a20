"""The coastlines and borders behind maps of the report: src/privtraj/report/assets/coastline.npz.

    npm pack world-atlas@2.0.2 && tar xzf world-atlas-2.0.2.tgz
    python experiments/coastline.py package/countries-10m.json

The input is Natural Earth 4.1.0, 1:10m, as TopoJSON. Lines are simplified by Douglas and Peucker,
and every point that is left knows how coarse a line may be to do without it, so that a map of a
country and one of the world are made from the same file by leaving points out.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privtraj.report.maps import FILE, FINEST, UNITS, level_of

Points = NDArray[np.float64]  # (n, 2) longitude, latitude
HALF = 180.0  # no step is longer, unless it jumps from one edge of the world to the other


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("countries", type=Path, help="countries-10m.json of world-atlas")
    parser.add_argument("--out", type=Path, default=Path("src/privtraj/report/assets") / FILE)
    args = parser.parse_args()
    topology = json.loads(args.countries.read_text("utf-8"))
    arcs = decoded(topology)
    rings = [closed(joined(arcs, ring)) for ring in land_rings(topology)]
    borders = [unwrapped(arcs[k]) for k in shared_arcs(topology)]
    kept = [(thinned(line, ring=True), True) for line in rings]
    kept += [(thinned(line, ring=False), False) for line in borders]
    kept = [((points, level), ring) for (points, level), ring in kept if len(points) > 1 + 2 * ring]
    write([one for one, _ in kept], sum(ring for _, ring in kept), args.out)
    print(f"{args.out}: {args.out.stat().st_size // 1000} kB")


def decoded(topology: dict[str, Any]) -> list[Points]:
    """Arcs of TopoJSON, which are steps in whole numbers, in degrees."""
    scale, start = (np.array(topology["transform"][key]) for key in ("scale", "translate"))
    return [np.cumsum(np.array(arc), axis=0) * scale + start for arc in topology["arcs"]]


def land_rings(topology: dict[str, Any]) -> list[list[int]]:
    """Arcs of each outline of land, and of each hole in it."""
    shapes = topology["objects"]["land"]["geometries"]
    return [ring for shape in shapes for polygon in shape["arcs"] for ring in polygon]


def joined(arcs: list[Points], ring: list[int]) -> Points:
    """Arcs one after the other; ~k is arc k from its end."""
    parts = [arcs[k] if k >= 0 else arcs[~k][::-1] for k in ring]
    return np.concatenate([parts[0], *(part[1:] for part in parts[1:])])


def shared_arcs(topology: dict[str, Any]) -> list[int]:
    """Arcs of two countries or more: the borders."""
    owners: dict[int, set[int]] = {}
    for owner, shape in enumerate(topology["objects"]["countries"]["geometries"]):
        polygons = shape["arcs"] if shape["type"] == "MultiPolygon" else [shape["arcs"]]
        for k in (k for polygon in polygons for ring in polygon for k in ring):
            owners.setdefault(max(k, ~k), set()).add(owner)
    return sorted(k for k, of in owners.items() if len(of) > 1)


def unwrapped(line: Points) -> Points:
    """Without jumps between the edges of the world: it goes on beyond them."""
    step = np.diff(line[:, 0])
    turns = np.cumsum(np.rint(step / (2 * HALF)))
    return np.column_stack([line[:, 0] - 2 * HALF * np.append(0.0, turns), line[:, 1]])


def closed(ring: Points) -> Points:
    """A ring that ends where it began; the one around the pole goes there and back."""
    ring = unwrapped(ring)
    if abs(ring[-1, 0] - ring[0, 0]) < HALF:
        return ring
    pole = np.array([[ring[-1, 0], -90.0], [ring[0, 0], -90.0], ring[0]])
    return np.concatenate([ring, pole])


def thinned(line: Points, ring: bool) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Points in whole units, and their levels, of those that the finest map needs."""
    need = needs(line, ring)
    whole, need = np.rint(line * UNITS).astype(np.int32)[need >= FINEST], need[need >= FINEST]
    moved = np.diff(whole, axis=0, prepend=whole[:1] - 1).any(axis=1)
    return whole[moved], level_of(need[moved])


def needs(line: Points, ring: bool) -> NDArray[np.float64]:
    """(n,) how far, in degrees of latitude, the line would be off without the point, at least as
    far as for all points that depend on it: Douglas and Peucker with every tolerance at once."""
    need = np.full(len(line), np.inf)
    spans = [(0, len(line) - 1, np.inf)]
    if ring:  # from its first point to the farthest one and back, so that small islands vanish
        far = apart(line, line[0], line[0])
        split = int(far.argmax())
        need[[0, split, -1]] = far[split]
        spans = [(0, split, far[split]), (split, len(line) - 1, far[split])]
    while spans:
        start, end, most = spans.pop()
        if end - start < 2:
            continue
        off = apart(line[start + 1 : end], line[start], line[end])
        worst = int(off.argmax())
        least = min(float(off[worst]), most)
        middle = start + 1 + worst
        need[middle] = least
        if least < FINEST:
            need[start + 1 : end] = least
            continue
        spans += [(start, middle, least), (middle, end, least)]
    return need


def apart(points: Points, start: Points, end: Points) -> NDArray[np.float64]:
    """(n,) distances from the segment between two points, in degrees of latitude."""
    shrink = [np.cos(np.radians(np.clip((start[1] + end[1]) / 2, -80, 80))), 1.0]
    part, way = (points - start) * shrink, (end - start) * shrink
    length = float(way @ way)
    share = np.clip(part @ way / length, 0, 1) if length > 0 else np.zeros(len(part))
    return np.linalg.norm(part - share[:, None] * way, axis=1)


def write(lines: list[tuple[Any, Any]], rings: int, out: Path) -> None:
    """The lines, rings first: first points, steps, numbers of points and levels."""
    points, levels = zip(*lines, strict=True)
    steps = np.concatenate([np.diff(line, axis=0) for line in points])
    np.savez_compressed(
        out,
        first=np.stack([line[0] for line in points]).astype(np.int32),
        steps=np.ascontiguousarray(steps.T.astype(np.int32)),
        sizes=np.array([len(line) for line in points], dtype=np.int32),
        levels=np.concatenate(levels),
        rings=np.int32(rings),
    )


if __name__ == "__main__":
    main()
