"""Domains that tests share."""

from itertools import pairwise

import numpy as np

import privtraj as pt

UNIT = np.array([[0.0, 1.0], [0.0, 1.0]])


def polygon(*rings):
    return pt.Domain.polygon(
        {"type": "Polygon", "coordinates": [list(map(list, r)) for r in rings]}
    )


def square(low, high):
    return [(low, low), (high, low), (high, high), (low, high), (low, low)]


def ground(domain, bounds=UNIT):
    return domain.ground(("x", "y"), bounds).ground


def around_a_block():
    """A square with a square hole in the middle."""
    return polygon(square(0.0, 1.0), square(0.25, 0.75))


def river():
    """Two banks and two narrow bridges."""
    rings = [square(0.0, 1.0)]
    for left, right in ((0.0, 0.25), (0.28, 0.7), (0.73, 1.0)):
        rings.append([(left, 0.45), (right, 0.45), (right, 0.55), (left, 0.55)])
    return polygon(*rings)


def islands():
    """Two that are not connected."""
    return polygon(square(0.05, 0.4), square(0.6, 0.95))


_ANGLE = np.linspace(0, np.pi, 40)
_TURN = np.stack([np.cos(_ANGLE), np.sin(_ANGLE)], axis=1)
BAY = np.concatenate([(0.5, 0.1) + _TURN * (0.45, 0.8), (0.5, 0.1) + _TURN[::-1] * (0.33, 0.6)])
BAY = BAY.tolist()


def bay():
    """A coast: land is a crescent, a third of the box."""
    return polygon(BAY)


def coast_mask(side=192):
    """A ragged coast with lakes, of more corners than ways can be exact for."""
    y, x = np.mgrid[0:side, 0:side] / side
    waves = np.sin(9 * x) + np.cos(7 * y + 3 * x) + 0.6 * np.sin(31 * x * y) + 0.4 * np.cos(40 * y)
    return pt.Domain.mask(waves > -0.4, (0, 1, 0, 1))


def streets(blocks=5):
    """A grid of streets."""
    at = np.linspace(0.1, 0.9, blocks + 1)
    edges = []
    for k in at:
        for a, b in pairwise(at):
            edges += [((a, k), (b, k)), ((k, a), (k, b))]
    return pt.Domain.network(edges)


def random_polygon(rng, vertices=14, holes=1):
    """A star around the middle, with star-shaped holes around its centre."""
    rings, size = [], 0.45
    for _ in range(1 + holes):
        angle = np.sort(rng.uniform(0, 2 * np.pi, vertices))
        radius = size * rng.uniform(0.45, 1.0, vertices)
        rings.append((0.5 + radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)).tolist())
        size *= 0.3
    return polygon(*rings)
