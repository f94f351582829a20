"""Where people can be and how they get there: places, walls, shortest ways."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

import privtraj as pt
from domain.shapes import (
    UNIT,
    around_a_block,
    bay,
    coast_mask,
    ground,
    islands,
    polygon,
    random_polygon,
    river,
    square,
    streets,
)
from privtraj.domain.region import MARGIN, Network
from privtraj.domain.walking import couplings_inside


def places(area, n, seed=0):
    """Some that are inside."""
    points = np.random.default_rng(seed).uniform(size=(20 * n, 2))
    return area.nearest(points[area.inside(points)][:n])


# Inside ---------------------------------------------------------------------------------------


def even_odd(points, segments):
    """The rule by itself: a ray to the right crosses an odd number of segments."""
    (x, y), (x0, y0, x1, y1) = points.T[:, :, None], segments.T
    over = (y0 <= y) != (y1 <= y)
    crossing = x0 + (y - y0) * (x1 - x0) / np.where(y1 == y0, 1.0, y1 - y0)
    return (over & (crossing > x)).sum(axis=1) % 2 == 1


def overlapping():
    """Two squares that share a corner of each other, which is in neither by the even-odd rule."""
    return polygon(square(0.1, 0.6), square(0.4, 0.9))


@pytest.mark.parametrize("make", [around_a_block, river, islands, overlapping, coast_mask])
def test_inside_is_the_even_odd_rule(make):
    domain = make()
    points = np.random.default_rng(1).uniform(size=(4000, 2))
    assert (domain.inside(points) == even_odd(points, domain.segments)).all()
    assert (ground(domain).inside(points) == domain.inside(points)).all()


def test_a_shared_border_of_two_districts_is_no_wall():
    left = [(0, 0), (0.5, 0), (0.5, 1), (0, 1)]
    right = [(0.5, 0), (1, 0), (1, 1), (0.5, 1)]
    shapes = [{"type": "Polygon", "coordinates": [ring]} for ring in (left, right)]
    features = [{"type": "Feature", "geometry": shape, "properties": {}} for shape in shapes]
    area = ground(pt.Domain.polygon({"type": "FeatureCollection", "features": features}))
    a, b = np.array([[0.1, 0.5]]), np.array([[0.9, 0.5]])
    assert area.inside(np.array([[0.2, 0.5], [0.8, 0.5]])).all()
    assert area.distances(a, b) == pytest.approx(0.8)


def test_a_mask_is_the_pixels_that_it_says_with_the_top_row_at_the_largest_y():
    mask = np.array([[1, 0, 0], [1, 1, 0]])
    domain = pt.Domain.mask(mask, (10, 13, 50, 52))
    points = np.array([(x, y) for y in (51.5, 50.5) for x in (10.5, 11.5, 12.5)])
    assert domain.inside(points).tolist() == mask.ravel().astype(bool).tolist()
    whole = pt.Domain.mask(np.random.default_rng(0).integers(0, 2, (20, 30)), (0, 30, 0, 20))
    y, x = np.mgrid[0:20, 0:30] + 0.5
    inside = whole.inside(np.stack([x.ravel(), 20 - y.ravel()], axis=1)).reshape(20, 30)
    assert (inside == np.random.default_rng(0).integers(0, 2, (20, 30)).astype(bool)).all()


def test_who_would_leave_through_a_wall_comes_back_from_it():
    area = ground(polygon(square(0.0, 1.0), [(0.5, 0), (0.6, 0), (0.6, 0.8), (0.5, 0.8)]))
    start = np.array([[0.3, 0.5], [0.3, 0.9], [0.3, 0.5]])
    moved = area.moved(start, np.array([[0.3, 0.0], [0.4, 0.0], [0.1, 0.2]]))
    assert np.allclose(moved, [[0.4, 0.5], [0.7, 0.9], [0.4, 0.7]], atol=1e-3)


def test_a_network_is_cut_to_the_box():
    given = np.array([[-1, 0.5, 2, 0.5], [0.5, 0.5, 0.5, 3], [2, 2, 3, 3], [-1, 0.0, 0.0, -1]])
    ends = Network(given.astype(float)).nodes.tolist()
    assert ends == [[0, 0.5], [0.5, 0.5], [0.5, 1], [1, 0.5]]
    along_the_box = Network(np.array([[0.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 1.0]]))
    assert len(along_the_box.nodes) == 3


# Any polygon ----------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), vertices=st.integers(4, 40), holes=st.integers(0, 2))
def test_nothing_leaves_any_polygon(seed, vertices, holes):
    rng = np.random.default_rng(seed)
    area = ground(random_polygon(rng, vertices, holes))
    points = rng.uniform(size=(200, 2))
    snapped = area.nearest(points)
    assert area.inside(snapped).all()
    kept = area.inside(points)
    assert np.abs(snapped - points)[kept].max(initial=0) <= 2 * MARGIN
    moved = area.moved(snapped, rng.normal(0, 0.2, snapped.shape))
    assert area.inside(moved).all()
    ends = rng.permutation(snapped)
    ways = area.ways(snapped, ends)
    read = ways.at(np.linspace(0, 1, 40))
    assert area.inside(read.reshape(-1, 2)).all()
    assert np.allclose(read[:, [0, -1]], np.stack([snapped, ends], axis=1), atol=1e-12)
    lengths = np.hypot(*np.moveaxis(np.diff(ways.corners, axis=1), -1, 0)).sum(axis=1)
    assert (lengths >= np.hypot(*(ends - snapped).T) - 1e-9).all()
    steps = np.hypot(*np.moveaxis(np.diff(read, axis=1), -1, 0))
    assert (steps <= (lengths[:, None] / 39) * (1 + 1e-9) + 1e-12)[~ways.apart].all()


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_ways_are_as_long_as_distances_say_and_keep_the_triangle_inequality(seed):
    area = ground(random_polygon(np.random.default_rng(seed), 12, 1))
    x = places(area, 25, seed)
    table = area.distances(x, x)
    assert np.allclose(table, table.T, atol=1e-9)
    i, j = np.triu_indices(len(x), 1)
    ways = area.ways(x[i], x[j])
    lengths = np.hypot(*np.moveaxis(np.diff(ways.corners, axis=1), -1, 0)).sum(axis=1)
    together = ~ways.apart
    assert (np.isinf(table[i, j]) == ways.apart).all()
    assert np.allclose(lengths[together], table[i, j][together], atol=1e-9)
    around = (table[:, :, None] + table[None]).min(axis=1)
    assert (table <= around + 1e-9).all()


# Known ways -----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [around_a_block, river, bay])
def test_who_sees_whom_is_what_shapely_says_and_couplings_are_as_cheap_as_of_all_ways(make):
    area = ground(make())
    x, y = places(area, 90, seed=2), places(area, 90, seed=3)
    pairs = (np.repeat(x, len(y), axis=0), np.tile(y, (len(x), 1)))
    assert (area.each_sees(x, y).ravel() == area.sees(*pairs)).all()
    ways = area.distances(x, y) ** 2
    plot = make().ground(("x", "y"), UNIT)
    couplings = couplings_inside(plot, np.stack([x, y]), np.ones((2, len(x))))
    found = (couplings.transitions[0].extra.toarray() * ways).sum()
    assert found == pytest.approx(ways[linear_sum_assignment(ways)].mean(), rel=1e-6)


def test_the_way_around_a_block_is_the_known_one():
    area = ground(around_a_block())
    below, above = np.array([[0.5, 0.1]]), np.array([[0.5, 0.9]])
    known = 2 * np.hypot(0.25, 0.15) + 0.5
    assert area.distances(below, above)[0, 0] == pytest.approx(known, abs=1e-5)
    corner = np.array([[0.1, 0.2]]), np.array([[0.9, 0.3]])
    known = np.hypot(0.65, 0.05) + np.hypot(0.15, 0.05)
    assert area.distances(*corner)[0, 0] == pytest.approx(known, abs=1e-5)


def test_people_go_over_the_nearer_bridge():
    area = ground(river())
    south, north = np.array([[0.1, 0.3], [0.9, 0.3]]), np.array([[0.1, 0.7], [0.9, 0.7]])
    known = 2 * np.hypot(0.15, 0.15) + 0.1
    assert area.distances(south, north)[0, 0] == pytest.approx(known, abs=1e-5)
    known = 2 * np.hypot(0.17, 0.15) + 0.1
    assert area.distances(south, north)[1, 1] == pytest.approx(known, abs=1e-5)
    x = area.ways(south, north).at(np.linspace(0, 1, 101))
    on_bridge = (x[..., 1] > 0.45) & (x[..., 1] < 0.55)
    assert ((x[0, on_bridge[0], 0] > 0.25) & (x[0, on_bridge[0], 0] < 0.28)).all()
    assert on_bridge.any(axis=1).all()


def test_the_way_out_of_a_bend_is_along_its_banks():
    """A canal in the form of a U, of width 0.1."""
    ring = [(0.2, 0.9), (0.2, 0.1), (0.8, 0.1), (0.8, 0.9), (0.7, 0.9), (0.7, 0.2), (0.3, 0.2),
            (0.3, 0.9)]  # fmt: skip
    area = ground(polygon(ring))
    a, b = np.array([[0.25, 0.9 - 0.1]]), np.array([[0.75, 0.8]])
    known = 2 * np.hypot(0.05, 0.6) + 0.4
    assert area.distances(a, b)[0, 0] == pytest.approx(known, abs=1e-5)


@pytest.mark.thorough
def test_ways_of_a_ragged_mask_are_inside_and_hardly_longer_than_on_a_fine_raster():
    area = ground(coast_mask())
    assert area.pulls > 1  # more corners than ways are exact for
    x = places(area, 150)
    y = np.random.default_rng(5).permutation(x)
    ways = area.ways(x, y)
    assert area.inside(ways.at(np.linspace(0, 1, 300)).reshape(-1, 2)).all()
    lengths = np.hypot(*np.moveaxis(np.diff(ways.corners, axis=1), -1, 0)).sum(axis=1)
    side = 192
    centres = (np.indices((side, side)).reshape(2, -1).T + 0.5) / side
    inside = area.inside(centres)
    steps = [(1, 0), (0, 1), (1, 1), (1, -1), (1, 2), (2, 1), (1, -2), (2, -1)]
    rows, columns, weights = [], [], []
    number = np.arange(side**2).reshape(side, side)
    for dx, dy in steps:
        a = number[: side - dx, max(0, -dy) : side - max(0, dy)].ravel()
        b = number[dx:, max(0, dy) : side - max(0, -dy)].ravel()
        free = inside[a] & inside[b]
        free[free] = area.sees(centres[a[free]], centres[b[free]])
        rows.append(a[free])
        columns.append(b[free])
        weights.append(np.full(free.sum(), np.hypot(dx, dy) / side))
    table = coo_array(
        (np.concatenate(weights), (np.concatenate(rows), np.concatenate(columns))),
        shape=(side**2, side**2),
    ).tocsr()
    cells = [np.minimum((p * side).astype(int), side - 1) @ (side, 1) for p in (x, y)]
    known = shortest_path(table, directed=False, indices=cells[0])[np.arange(len(x)), cells[1]]
    compared = np.isfinite(known) & ~ways.apart
    assert compared.mean() > 0.3
    assert np.median(lengths[compared] / (known[compared] + 1 / side)) < 1.02
    assert (lengths[compared] < 1.15 * known[compared] + 3 / side).all()


# Parts ----------------------------------------------------------------------------------------


def test_nobody_gets_to_another_island():
    area = ground(islands())
    x, y = np.array([[0.2, 0.2]]), np.array([[0.8, 0.8]])
    assert np.isinf(area.distances(x, y)[0, 0])
    ways = area.ways(x, y)
    assert ways.apart.all()
    read = ways.at(np.array([0.0, 0.4, 0.6, 1.0]))[0]
    assert read.tolist() == [x[0].tolist()] * 2 + [y[0].tolist()] * 2
    assert len(set(area.part(places(area, 200)).tolist())) == 2


# Networks -------------------------------------------------------------------------------------


def test_ways_in_a_network_are_the_shortest():
    rng = np.random.default_rng(3)
    nodes = rng.uniform(0.05, 0.95, (40, 2))
    pairs = np.array([(i, j) for i in range(40) for j in np.argsort(
        np.hypot(*(nodes - nodes[i]).T))[1:4]])  # fmt: skip
    domain = pt.Domain.network([(nodes[i], nodes[j]) for i, j in pairs])
    net = ground(domain)
    lengths = np.hypot(*(nodes[pairs[:, 0]] - nodes[pairs[:, 1]]).T)
    known = shortest_path(coo_array((lengths, pairs.T), shape=(40, 40)).tocsr(), directed=False)
    assert np.allclose(net.distances(nodes, nodes), known, atol=1e-7)
    start, end = (net.nearest(rng.uniform(size=(300, 2))) for _ in range(2))
    ways = net.ways(start, end)
    read = ways.at(np.linspace(0, 1, 60))
    assert net.inside(read.reshape(-1, 2)).all()
    corners = np.hypot(*np.moveaxis(np.diff(ways.corners, axis=1), -1, 0)).sum(axis=1)
    table = np.array(
        [net.distances(a[None], b[None])[0, 0] for a, b in zip(start, end, strict=True)]
    )
    assert np.allclose(corners[~ways.apart], table[~ways.apart])


def test_in_a_grid_of_streets_distances_are_those_of_manhattan():
    net = ground(streets())
    a, b = np.array([[0.1, 0.2]]), np.array([[0.9, 0.62]])
    assert net.distances(a, b)[0, 0] == pytest.approx(0.8 + 0.42, abs=1e-6)
    assert net.inside(np.array([[0.1, 0.2], [0.2, 0.2]])).tolist() == [True, False]


def test_streets_that_only_cross_do_not_meet():
    net = ground(pt.Domain.network([((0, 0.5), (1, 0.5)), ((0.5, 0), (0.5, 1))]))
    assert np.isinf(net.distances(np.array([[0.2, 0.5]]), np.array([[0.5, 0.2]])))


# Cells ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [around_a_block, bay, river, streets])
def test_cells_that_hold_any_place_inside_are_touched(make):
    area = ground(make())
    x = area.nearest(np.random.default_rng(0).uniform(size=(5000, 2)))
    for side in (5, 16, 40):
        touched = area.touched(side)
        cells = np.minimum((x * side).astype(int), side - 1)
        assert touched[cells[:, 0], cells[:, 1]].all()
    if make is around_a_block:
        assert not area.touched(40)[12:28, 12:28].any()


def test_cells_follow_the_features_that_the_domain_is_about():
    domain = polygon([(0, 0), (0.5, 0), (0.5, 1), (0, 1)])
    straight = domain.ground(("x", "y"), UNIT).cells(4, 2)
    assert straight.any(axis=1).tolist() == straight.all(axis=1).tolist() == [True] * 3 + [False]
    turned = domain.ground(("y", "x"), UNIT).cells(4, 2)
    assert (turned == straight.T).all()
    three = domain.ground(("x", "age", "y"), np.array([[0.0, 1.0]] * 3)).cells(4, 3)
    assert (three == straight[:, None]).all()


def test_a_domain_larger_than_the_box_is_cut_to_it():
    area = ground(polygon(square(-3.0, 4.0), square(0.4, 9.0)))
    assert area.inside(np.array([[0.2, 0.9]])).all()
    assert not area.inside(np.array([[-0.5, 0.2]])).any()
    a, b = np.array([[0.2, 0.9]]), np.array([[0.9, 0.2]])
    known = np.hypot(0.2, 0.5) + np.hypot(0.5, 0.2)
    assert area.distances(a, b)[0, 0] == pytest.approx(known, abs=1e-5)


@pytest.mark.parametrize("ring", [[(-0.5, 0.6), (0.6, 2), (-0.5, 2)], [(0.1, 0.1), (0.9, 0.9)]])
def test_a_domain_without_any_place_in_the_box_is_refused(ring):
    """A corner that the box misses, and a ring that has no inside."""
    with pytest.raises(pt.InputError, match=r"no place in common|empty"):
        ground(polygon(ring))
