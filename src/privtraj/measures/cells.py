"""From noisy counts to people: which cells hold some, where in them, and particles that stand for
them. All of it is post-processing.

Which cells.  A cell is significant when noise alone would produce its count, or a larger one, with
a chance below
    cells^-SIGNIFICANCE_EXPONENT / 2,
or when it touches a significant cell and the chance is below 3^-d / 2, a level for the 3^d cells of
a neighbourhood: a false cell next to a true one costs little in transport distance and a missing
one more. What is left is asked again in blocks of 2 and 4 cells a side, at 3^(-d
SIGNIFICANCE_EXPONENT) / 2, as these are larger if false: people too thinly spread for a cell stand
out in a block, and a significant block shares its people among its cells as their own counts say.

Counts are averaged over time first, as far as people stay (`over_time`): a cell that is supported
by its own past and future stands out, one that noise has filled once does not. So does a cell that
stands out of the counts as filtered over space and time, by the noise that is left in it.

The others are below every threshold one by one, but may be clear together: in shells of doubling
distance from the nearest significant cell, at all times. The number m of people of a shell is seen
through a sum of noisy counts, each as often as averages over time have it. Before it is, nobody is
in any shell with chance .9, or people reach out to one of the shells, equally likely, and any share
from the noise of the clearest shell to half of all, log-evenly, is in each up to there: who is far
away was near as well, so that shells help each other.
Squared W2 is linear in mass that is misplaced, so that it is the median of m after it that counts.
Times share them as they do those one shell nearer, but for what varies by more than noise, its
variance by moments: narrow clouds have no tails of wide ones. A cell at distances r from
significant ones that hold w people has sum(w r^-(d + 1)) of them.
Where the significant people are no majority, all others are around them in this way, in all shells
together. A time at which nothing is significant is read as the nearest one at which a majority is.

Cells outside a public domain hold nobody, whatever their noisy counts say: they are left out before
anything else, so that thresholds are for fewer cells and blocks have the noise of fewer.

Where in them.  Cells tell how many people are in them, not where. People who are even inside a cell
jump at its border, and are too far apart: those of a group are at the sides of its outer cells that
face its middle. So the density of people is a mixture of normals whose width follows the cells,
    f = K_s g,      s = h / sqrt(12), as wide as an even cell,      h = side of a cell,
g >= 0 on parts of the cells, which shows no borders, and g is what explains the masses w of the
cells, by rounds of expectation and maximisation (Richardson's and Lucy's)
    g <- g K_s B' ( w / B K_s g ),      B the sum over the parts of a cell,
from people who are even in their cells, blurred by K_s. A few ROUNDS, as more of them follow the
noise of the masses.

A model's people are particles and normal noise of its bandwidth b. Clouds of m particles overlap
when b is about the distance between them,
    b = (volume / m)^(1/d),      volume = h^d / sum_j w_j^2,
and s is b at least. Normals of widths b and sqrt(s^2 - b^2) make one of width s, so particles have
the density K_sqrt(s^2 - b^2) g, and people f.

With a domain, which may have walls, people stay in cells that hold some, and in the domain.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privtraj.base.arrays import Floats, Ints, Mask, along_z_curve, systematic
from privtraj.domain.domain import Plot
from privtraj.measures.over_time import GridMeasure, TimeAverage, filtered, time_average
from privtraj.privacy.noise import laplace_variance

SIGNIFICANCE_EXPONENT = 1.4  # chance of a false cell: cells^-1.4 / 2. At 1.6 groups of people who
# are few are lost (50 at a time: twice the error of three modes); at 1.3 spread ones get noise; at
# .7 fast loops have 2.0 (.4) times the error
MAX_POOLINGS = 2  # of counts, to blocks of 2 and 4 cells a side; with more, thin tails lose 8 %
TAILS = 201  # shares of people in a shell that are tried
MOST_CELLS_PER_TIME = 2**18  # bounds work and memory; set by hand, 2026-11
PARTS = 4  # of a cell, a side, in which the density is computed; fewer where there is no room, or,
# without a domain, where s is wider: as many in s are enough
ROUNDS = 15  # of explaining masses: a point of width s / sqrt(p) has p = 1/2 before, and more by
# 1 / (2 + p) after a round: 4 at last. 10 have 1.03 times the error, 30 leave twice the gaps
FARTHEST = 3.0  # widths to which normals reach on the grid
LEAST_PART = 1e-7  # of the people: a part of a cell with less has nobody

Inside = Callable[[int], Mask]
"""Which cells (per_side, ...) of a grid are in the public domain, by cells per side."""
_WHOLE_DRAWS: Floats = np.unique(np.geomspace(1, 2**40, 240).round())
_EVEN = 1 / math.sqrt(12)  # width of people who are even in a cell, or in the box, over its side


# Which cells hold people --------------------------------------------------------------------------


class Reading(NamedTuple):
    """One time's people in cells of one size: centres (J, d), counts (J,) above 0."""

    centres: Floats
    counts: Floats
    side: float


def estimate(
    counts: NDArray[np.int64],
    cells_per_side: int,
    epsilon: float,
    people: Floats,
    dimensions: int,
    gaps: Floats | None = None,
    inside: Mask | None = None,
) -> GridMeasure:
    """The measure behind noisy counts (T, cells_per_side ** d); people (T,): released totals.

    gaps: (T - 1,) between the times, any unit, to average counts over time; None for not at all.
    inside: (cells_per_side, ...) which cells are in the domain; None for all.
    """
    grid = counts.astype(np.float64).reshape(-1, *(cells_per_side,) * dimensions)
    within = np.ones(grid.shape[1:], bool) if inside is None else inside
    grid *= within
    held, matrix = reading(grid, within, epsilon, people, gaps)
    held = without_islands(held, epsilon, int(np.count_nonzero(within)))
    shares = np.minimum(held.reshape(len(people), -1).sum(axis=1) / people, 1.0)
    readings = completed(held, grid, within, matrix, people, laplace_variance(epsilon))
    trusted = np.flatnonzero(shares > 1 / 2)
    for silent in np.flatnonzero(shares == 0):
        if len(trusted):
            readings[silent] = readings[trusted[np.abs(trusted - silent).argmin()]]
        elif inside is not None:  # nothing stands out from the noise: people are anywhere
            readings[silent] = as_reading(inside.astype(np.float64))
        elif not len(readings[silent].counts):  # all that is left is the box
            readings[silent] = Reading(np.full((1, dimensions), 0.5), np.ones(1), 1.0)
    return stacked(readings, shares)


def stacked(readings: list[Reading], significant: Floats) -> GridMeasure:
    """The readings of all times."""
    every, counts, sides = zip(*readings, strict=True)
    most = max(map(len, counts))
    centres = np.full((len(readings), most, every[0].shape[1]), 0.5)
    weights = np.zeros((len(readings), most))
    for i, held in enumerate(counts):
        centres[i, : len(held)] = every[i]
        weights[i, : len(held)] = held / held.sum()
    return GridMeasure(centres, weights, np.array(sides), significant)


def as_reading(grid: Floats, per_side: int | None = None, corner: Ints | int = 0) -> Reading:
    """The people of a grid (side, ...), or of a window at the corner (d,) of one of per_side."""
    places = np.argwhere(grid > 0)
    places = places[along_z_curve(places)]  # so that a systematic sample of them is spread evenly
    cells = per_side or len(grid)
    return Reading((corner + places + 0.5) / cells, grid[tuple(places.T)], 1 / cells)


def completed(
    held: Floats, noisy: Floats, inside: Mask, matrix: Floats, people: Floats, noise_variance: float
) -> list[Reading]:
    """Significant people (T, side, ...), and those who are clear only together.

    noisy: (T, side, ...) counts.  matrix: (T, T) by which they are averaged over time.  people:
    (T,) in all.  noise_variance: of a count.
    """
    from scipy.ndimage import distance_transform_edt

    n, d = len(inside), inside.ndim
    # tails of a person in the middle, as a Fourier transform: of 2 n numbers, one more than it
    # takes, which is faster
    wide, axes = (2 * n,) * d, range(d)
    squares = np.square(np.indices(wide) - n + 1.0).sum(axis=0)
    tail = np.fft.rfftn(np.maximum(squares, 1.0) ** (-(d + 1) / 2))
    missed, number = np.full(len(people), np.nan), 0
    places, shells = np.zeros_like(held), np.full(held.shape, -1)
    for t, grid in enumerate(held):
        found, place = float(grid.sum()), inside.astype(np.float64)
        distance: Floats = np.full(grid.shape, 2.0)
        if found > 0:
            distance = distance_transform_edt(grid == 0)
            around = np.fft.irfftn(tail * np.fft.rfftn(grid / found, wide, axes), wide, axes)
            place = np.where(inside, np.maximum(around[(slice(n - 1, -1),) * d], 0.0), 0.0)
        if 0 < found < people[t] / 2:
            missed[t] = people[t] - found
        away = (distance > 0) & (place > 0)
        places[t] = np.where(away, place, 0.0)
        if np.isnan(missed[t]):
            shells[t] = np.where(away, np.log2(np.maximum(distance, 1.0)).astype(np.int64), -1)
        number = max(number, int(shells[t].max()) + 1)
    sums, noise = np.zeros((2, number, len(people)))  # of each time
    errors = np.zeros((number, 1))  # of all
    shown = matrix @ noisy.reshape(len(people), -1)
    of_cell = noise_variance * (matrix @ matrix.T)  # covariance over time
    for s in range(number):
        some = (shells == s).reshape(shown.shape)
        sums[s] = (some * shown).sum(axis=1)
        covariance = of_cell * (some.astype(np.float64) @ some.T)
        noise[s] = covariance.diagonal()
        errors[s] = math.sqrt(covariance.sum())
    # how likely each share is beside none; how far people reach is the same for all shells
    errors, total, found = np.maximum(errors, 1e-6), people.sum(), sums.sum(axis=1, keepdims=True)
    tried = np.geomspace(min(float(errors.min(initial=total)) / total, 1 / 4), 1 / 2, TAILS)
    beside = 0.5 * ((found / errors) ** 2 - ((found - tried * total) / errors) ** 2)
    most = beside.max(axis=1, initial=-np.inf)
    evidence = np.log(np.exp(beside - most[:, None]).mean(axis=1)) + most
    reach = np.append(math.log(9 * max(number, 1)), np.cumsum(evidence))  # none: nine in ten
    reached = np.exp(reach - reach.max())
    reached = np.cumsum(reached[::-1])[::-1][1:] / reached.sum()  # chance of each shell
    chance = np.exp(beside - most[:, None])
    chance = np.cumsum(chance, axis=1) / chance.sum(axis=1, keepdims=True)
    chance = 1 - reached[:, None] * (1 - np.insert(chance, 0, 0.0, axis=1))
    shares = np.append(0.0, tried)
    together = shares[(chance < 0.5).sum(axis=1)]
    # of each time: in proportion to those one shell nearer, but for what varies by more than noise
    gone, near = np.zeros_like(sums), people
    for s, share in enumerate(together):
        some = noise[s] > 0
        weight = 1 / noise[s, some]
        alike = share * people[some].sum() * near[some] / max(near[some].sum(), 1e-300)
        apart = sums[s, some] - alike
        vary = max(weight @ apart**2 - len(apart), 0.0) / max(weight.sum(), 1e-300)
        varied = np.maximum(alike + apart * vary / (vary + 1 / weight), 0.0)
        gone[s, some] = np.where(alike > 0, varied, 0.0)
        near = gone[s]
    readings = []
    for t, (place, shell) in enumerate(zip(places, shells, strict=True)):
        if np.isnan(missed[t]):
            even = np.bincount(shell.ravel() + 1, place.ravel(), number + 1)[1:]
            scale = gone[:, t] / np.maximum(even, 1e-300)
            place = place * np.append(0.0, scale)[shell + 1]
        else:
            place = place * missed[t] / max(place.sum(), 1e-300)
        readings.append(as_reading(held[t] + place))
    return readings


def reading(
    noisy: Floats, inside: Mask, epsilon: float, people: Floats, gaps: Floats | None = None
) -> tuple[Floats, Floats]:
    """People (T, side, ...) in significant cells, then in significant blocks of those left; and the
    matrix (T, T) by which cells are averaged over time.

    noisy: (T, side, ...) counts, 0 outside the domain.  people: (T,) in all.
    """
    grids, variance, doubled = [noisy], laplace_variance(epsilon), 2**inside.ndim
    while grids[-1].shape[1] % 2 == 0 and grids[-1].shape[1] >= 4:
        grids.append(blocks(grids[-1], 1))
    over_time: list[TimeAverage] = []
    for k in reversed(range(len(grids))):  # larger blocks tell smaller ones how people move
        least = over_time[-1].amplitude / doubled if over_time else 0.0
        flat = grids[k].reshape(len(people), -1)
        over_time.append(time_average(flat, doubled**k * variance, people, gaps, least))
    average, *of_blocks = reversed(over_time)
    at_times, places = (-1, *(1,) * inside.ndim), int(np.count_nonzero(inside))
    counts = np.tensordot(average.matrix, noisy, 1)
    free = np.broadcast_to(inside.astype(np.float64), counts.shape)
    draws = average.draws.reshape(at_times)
    kept = significant(counts, free, draws, epsilon, places=places)
    smooth, draws = filtered(noisy, variance, average.modes, gaps is not None)
    kept |= significant(smooth, free, draws, epsilon, places=places)
    held = np.where(kept, np.maximum(counts, 0.0), 0.0)
    for k, of_block in enumerate(of_blocks[:MAX_POOLINGS], start=1):
        cells = blocks(np.where(kept, 0.0, free), k)
        left = np.tensordot(of_block.matrix, blocks(np.where(kept, 0.0, noisy), k), 1)
        known = blocks(kept.astype(np.int64), k) > 0
        draws = of_block.draws.reshape(at_times)
        crowded = significant(left, cells, draws, epsilon, known, places)
        added = spread_out(crowded, k) & ~kept & (free > 0)
        own = np.where(added, np.maximum(counts, 0.0), 0.0)
        share = own / np.maximum(spread_out(blocks(own, k), k), 1e-300)
        held += share * spread_out(left, k)
        kept |= added
    return held, average.matrix


def without_islands(people: Floats, epsilon: float, places: int | None = None) -> Floats:
    """People (T, side, ...) less those of islands that noise may have made: of n cells of all times
    one such island is expected in n fits.

    places: how many cells of a time are in the domain; all of them by default.
    """
    from scipy.ndimage import label, sum_labels

    island, count = label(people > 0, np.ones((3,) * people.ndim))
    if count == 0:
        return people
    numbers = np.arange(1, count + 1)
    held, cells = sum_labels(people, island, numbers), np.bincount(island.ravel())[1:]
    chance = -2 * math.log(len(people) * (places or people[0].size))
    real = np.append(False, held > _threshold(cells, epsilon, chance))
    return np.where(real[island], people, 0.0)


def significant(
    counts: Floats,
    cells: Floats,
    draws: Floats,
    epsilon: float,
    known: Mask | None = None,
    places: int | None = None,
) -> Mask:
    """Which counts (T, side, ...) noise would hardly produce.

    cells: how many noisy cells each is the sum of (0: none).  draws: (T, ...) how many draws of
    noise were averaged in each cell.  known: places that hold significant cells already.  places:
    how many there are in the domain; all of them by default.
    """
    from scipy.ndimage import maximum_filter

    anywhere = -SIGNIFICANCE_EXPONENT * math.log(places or counts[0].size) - math.log(2)
    exponent = 1.0 if known is None else SIGNIFICANCE_EXPONENT
    nearby = -exponent * (counts.ndim - 1) * math.log(3) - math.log(2)
    total = draws * counts
    keep: Mask = (cells > 0) & (total > _threshold(cells * draws, epsilon, anywhere))
    likely = (cells > 0) & (total > _threshold(cells * draws, epsilon, nearby))
    touching = (1,) + (3,) * (counts.ndim - 1)  # cells of the same time
    near = maximum_filter(keep if known is None else keep | known, touching, mode="constant")
    return keep | likely & near


def noise_quantile(cells: ArrayLike, epsilon: float, log_chance: float) -> Floats:
    """x (...) that sums of `cells` (...) Laplace variables exceed with chance e^log_chance at most.

    Their scale is 1 / epsilon. Exact for one; for more Chernoff's bound,
        P(S > x) <= exp(-s x) / (1 - s^2 / epsilon^2)^cells,
    which is least at s = (sqrt(cells^2 + (epsilon x)^2) - cells) / x.
    """
    cells = np.asarray(cells, np.float64)
    low, high = np.zeros_like(cells), (cells - 2 * log_chance) * 2 / epsilon
    for _ in range(50):  # the bound at high is below the chance
        x = (low + high) / 2
        s = (np.sqrt(cells**2 + (epsilon * x) ** 2) - cells) / x
        above = -s * x - cells * np.log1p(-((s / epsilon) ** 2)) > log_chance
        low, high = np.where(above, x, low), np.where(above, high, x)
    return np.where(cells == 1, max(0.0, -(log_chance + math.log(2)) / epsilon), high)


def _threshold(draws: NDArray[Any], epsilon: float, log_chance: float) -> Floats:
    """Quantiles of sums of so many draws, linear between whole numbers of them."""
    known = _WHOLE_DRAWS[: np.searchsorted(_WHOLE_DRAWS, draws.max()) + 1]
    return np.interp(draws, known, noise_quantile(known, epsilon, log_chance))


def blocks(counts: NDArray[Any], level: int) -> NDArray[Any]:
    """Sums over blocks of 2^level cells a side of every time; (T, side, ...)."""
    width = 2**level
    for axis in range(1, counts.ndim):
        shape = counts.shape
        split = (*shape[:axis], shape[axis] // width, width, *shape[axis + 1 :])
        counts = counts.reshape(split).sum(axis=axis + 1)
    return counts


def spread_out(values: NDArray[Any], level: int) -> NDArray[Any]:
    """Every value (T, side, ...) repeated over the cells of its block of 2^level a side."""
    for axis in range(1, values.ndim):
        values = np.repeat(values, 2**level, axis=axis)
    return values


# Where in them ------------------------------------------------------------------------------------


def bandwidths(measure: GridMeasure, m: int) -> Floats:
    """b (T,) of m particles that stand for the measure."""
    d = measure.centres.shape[2]
    density = (measure.weights**2).sum(axis=1) / measure.sides**d  # 1 / volume
    return np.minimum((density * m) ** (-1 / d), _EVEN)


def smoothed(measure: GridMeasure, bandwidth: Floats, inside: Inside | None = None) -> GridMeasure:
    """The measure in parts of its cells, for particles that get noise of bandwidth (T,)."""
    made = []
    for t, side in enumerate(measure.sides.tolist()):  # on the part of the grid that may be reached
        some = measure.weights[t] > 0
        own = float(bandwidth[t]) / side
        width = max(_EVEN, own)  # s, in cells
        per_side, reach = round(1 / side), math.ceil(FARTHEST * width)
        places = (measure.centres[t, some] * per_side).astype(np.int64)
        corner = np.maximum(places.min(axis=0) - reach, 0)
        shape = np.minimum(places.max(axis=0) + reach + 1, per_side) - corner
        shares = np.zeros((1, *shape))
        shares[(0, *(places - corner).T)] = measure.weights[t, some]
        room = math.log2(MOST_CELLS_PER_TIME / shares.size) / len(shape)
        fine = math.log2(PARTS)
        if inside is None:  # a domain has details of its own
            fine = math.ceil(math.log2(max(PARTS * _EVEN / width, 1.0)))
        level = int(np.clip(room, 0, fine))  # how often cells are halved a side
        parts = 2**level
        # 1 for parts of cells where people may be, else 0; and what stays there of the noise
        free: Floats | float = 1.0
        kept: Floats | float = 1.0
        if inside is not None:
            here = (slice(parts * a, parts * (a + n)) for a, n in zip(corner, shape, strict=True))
            held = spread_out(shares > 0, level)
            free = (held & inside(per_side * parts)[tuple(here)]).astype(np.float64)
            kept = np.maximum(_normal(free, width * parts), 1e-9)
        room_for = np.ones_like(spread_out(shares, level)) * free
        even = spread_out(shares / np.maximum(blocks(room_for, level), 1.0), level) * room_for
        mixture = free * _normal(even / kept, width * parts)  # g
        if inside is None and len(shape) > 1:  # by a matrix K' B' of each axis, which are short
            axes = []
            for n in shape:
                axes.append(blocks(_normal(np.eye(parts * n), width * parts), level))
            for _ in range(ROUNDS):
                explained = mixture
                for axis in axes:  # each product moves its axis to the end
                    explained = np.tensordot(explained, axis, (1, 0))
                back = shares / np.maximum(explained, 1e-300)
                for axis in axes:
                    back = np.tensordot(back, axis, (1, 1))
                mixture = mixture * back
        else:
            for _ in range(ROUNDS):
                explained = free * _normal(mixture / kept, width * parts)  # K g, with the same sum
                ratio = shares / np.maximum(blocks(explained, level), 1e-300)
                back = _normal(free * spread_out(ratio, level), width * parts) / kept
                mixture = mixture * back
        in_part = parts**-2 / 12  # variance inside a part, in squared cells
        rest = math.sqrt(max(width**2 - own**2 - in_part, 0.0))
        if inside is not None:
            kept = np.maximum(_normal(room_for, rest * parts), 1e-9)
        density = (free * _normal(mixture / kept, rest * parts))[0]
        density[density < LEAST_PART * density.sum()] = 0.0
        made.append(as_reading(density, per_side * parts, corner * parts))
    return stacked(made, measure.significant)


def _normal(values: Floats, width: float) -> Floats:
    """Values (1, side, ...) and normal noise of a width in parts, which the walls turn back."""
    from scipy.ndimage import gaussian_filter

    along = (0.0,) + (width,) * (values.ndim - 1)
    blurred: Floats = gaussian_filter(values, along, mode="reflect", truncate=FARTHEST)
    return blurred


def placed(
    measure: GridMeasure, m: int, rng: np.random.Generator, plot: Plot | None = None
) -> tuple[Floats, Floats]:
    """Particles (T, m, d) and weights (T, m) that fill the cells evenly, with a domain its inside.

    Every cell with people has one particle and more in proportion, all of a cell of equal weight;
    if there are more cells than particles, a systematic sample of them has equal weights.
    """
    clouds, shares = [], []
    for places, weights, side in zip(measure.centres, measure.weights, measure.sides, strict=True):
        held = np.flatnonzero(weights)
        if len(held) > m:
            cell, share = systematic(weights, m, rng), np.full(m, 1 / m)
        else:
            more = systematic(weights, m - len(held), rng) if m > len(held) else held[:0]
            cell = np.sort(np.concatenate([held, more]))
            share = weights[cell] / np.bincount(cell)[cell]
        within = rng.uniform(-0.5, 0.5, size=(m, places.shape[1]))
        cloud = np.clip(places[cell] + side * within, 0, 1)
        clouds.append(cloud if plot is None else plot.settled(cloud, places[cell], side, rng))
        shares.append(share)
    return np.stack(clouds), np.stack(shares)
