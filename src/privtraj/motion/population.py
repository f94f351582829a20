"""A population that changes: when each of n people is there, and whose past a newborn shares.

Where people come and go alike everywhere, lives begin with N(0) at once and then at the rate
(dN/dt)+, and end at the rate (dN/dt)- / N each; turnover w adds w N to the former, w to the latter.
It does not matter who it is, so those who are there have the model's marginals. Begins and ends are
spread evenly, by multiples of the golden ratio: the number who are there follows N(t) closer than
chance would have it, while every life alone is an exact draw.

Unbalanced least action tells who becomes whom if people multiply in some places and vanish in
others (`pedigree`). Between two knots everybody at x has e^(g(x) dt) descendants on average: none,
one or several, as many together as there are people at the next knot, with whom they are matched as
in `process`. Mass that grew need not be transported. Where g is not known it is learned from the
clouds a and b of neighbouring knots: those who go from one to the other, P, end as b says and begin
nearly as a says,
    min over P, h   sum P |ahead(x) - y|^2 / 2  +  APART^2 KL(P 1 | a e^h),       P' 1 = b,
so that x has r(x) = (P 1)(x) / a(x) descendants more or less than the mean: growth that differs
among neighbours is likelier than motion over distances beyond APART. What a whole group has in
common, e^h, costs nothing: fates that are apart grow and shrink by themselves, and whoever is at
the rim of one is not carried to the next because that grows. Groups are not cut out: e^h is r as
it is spread by STEPS steps of a walk to neighbours, of which few lead over a gap, and which end
anywhere in a cloud without one. It is solved by Sinkhorn's algorithm with a little entropy.

Branching (`family`): whoever is born has a mother, and shares her past. Everybody has a path with
the right law at all times, and is there from some time on. Their mother is who is nearest then.
Before, they are their mother; afterwards the little that lay between them fades away, so that they
part smoothly, and those who are there keep the model's marginals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from privtraj.base.arrays import Floats, Ints, systematic
from privtraj.base.errors import Arg, InputError
from privtraj.base.space import from_unit, to_unit
from privtraj.columns.kinds import Axes
from privtraj.motion.growth import Growth, Sizes
from privtraj.motion.process import FITTED, MOST_MATCHED, Reference, Scale, matched

APART = 0.1  # shares of the box, beyond which masses change by growth rather than by motion
BLUR = 0.05  # Sinkhorn's entropy, in shares of APART^2: .02 of the box, less than between groups
ITERATIONS = 200  # of Sinkhorn, each of which leaves 1 / (1 + BLUR) of an error in the masses
NEIGHBOUR, STEPS = 5, 64
"""A step goes as far as the fifth neighbour is, and there are so many. Where a fate .2 to .3 of the
box from another grows from 8 to 92 %, and where one wide cloud moves (seeds 1 to 3): with 16 steps
a tenth to a fifth of that motion is taken for growth, with 256 twice as many come from the other
fate; with the third neighbour, or the eighth, it is much the same."""
MOMENTS = np.linspace(0, 1, 129)  # of the clock from 0 to 1, at which people of families are born
PARTING = 0.1  # share of the range over which a mother and her daughter part

_GRID = np.linspace(0, 1, 2049)  # even moments at which births and departures are added up
_GOLDEN = (5**0.5 - 1) / 2
_TINY = 1e-6  # of the box: people at one and the same place are neighbours
_ALIKE = 1e3  # boxes that are between people who differ in what is fixed

UnitRate = Callable[[Floats, float], Floats]  # as `growth.Rate`, in the unit cube and range of time


class Lives(NamedTuple):
    """From begin (n,) to end (n,), both included, on the clock from 0 to 1."""

    begin: Floats
    end: Floats

    def at(self, times: Floats) -> np.ndarray:
        """Whether they are there (n, q) at times (q,)."""
        return np.asarray((self.begin[:, None] <= times) & (times <= self.end[:, None]))


class Pedigree(NamedTuple):
    """Everybody who ever lived. knots: (S, K, d), before they are born those of their mother.

    born, died: (S,) number of the knot after which they are born, -1 for those who are there from
    the start, and after which they are no more, K - 1 for those who stay.
    mother: (S,) -1 for those who are there from the start.  clock: (K,).  alive: (K,) how many.
    """

    knots: Floats
    born: Ints
    died: Ints
    mother: Ints
    clock: Floats
    alive: Ints

    def moment(self, side: int, share: Floats, who: Ints | slice = slice(None)) -> Floats:
        """Births (side 0) or ends (1) of some of them: where the number between two knots has gone
        this share (n,) of its way, as it grows exponentially."""
        knot = (self.born if side == 0 else self.died)[who]
        here = np.clip(knot, 0, len(self.clock) - 2)
        ratio = np.log(self.alive[here + 1] / self.alive[here])
        flat = np.abs(ratio) < 1e-9
        way = np.log1p(share * np.expm1(ratio)) / np.where(flat, 1.0, ratio)
        times = self.clock[here] + np.diff(self.clock)[here] * np.where(flat, share, way)
        return np.where(knot < 0, 0.0, np.where(knot == len(self.clock) - 1, 1.0, times))

    def lives(self, n: int, turnover: float, rng: np.random.Generator) -> tuple[Lives, Ints]:
        """n lives, and whose they are (n,): begins and ends are anywhere between the knots.

        With turnover somebody's life becomes several, one after the other: it begins where theirs
        does, or at the rate w while it lasts, and ends at the rate w if not before.
        """
        first, last = (self.moment(side, np.full(len(self.born), 0.5)) for side in (0, 1))
        weights = 1 + turnover * (last - first)
        chosen = rng.permutation(systematic(weights, n, rng))
        ranks, shift = rng.permutation(n), rng.uniform(size=2)
        spread = np.mod(ranks[:, None] * np.array([_GOLDEN, _GOLDEN**2]) + shift, 1.0)
        begin, end = (self.moment(side, spread[:, side], chosen) for side in (0, 1))
        if turnover > 0:
            later = rng.uniform(size=n) * weights[chosen] > 1
            begin = np.where(later, begin + rng.uniform(size=n) * (end - begin), begin)
            end = np.minimum(end, begin + rng.exponential(1 / turnover, n))
        return Lives(begin, np.maximum(begin, end)), chosen


class Population(NamedTuple):
    """sizes: N(t).  pedigree: of those who are born and leave by place, instead.

    turnover: over the whole range of time.
    """

    sizes: Sizes | None
    pedigree: Pedigree | None
    turnover: float

    @classmethod
    def of(
        cls,
        growth: Growth,
        scale: Scale,
        diagnostics: dict[str, Any],
        clouds: tuple[Floats, Floats, Floats],
        reference: Reference,
    ) -> Population:
        """Of particles (K, m, d) with weights (K, m) at times (K,) in the unit range.

        diagnostics: of the model.  reference: by which people move, in the unit cube.
        """
        sizes = growth.sizes(scale.start, scale.length, diagnostics)
        turnover = growth.turnover * scale.length
        if growth.by_place is None:
            return cls(sizes, None, turnover)
        by_place = growth.by_place

        def unit(u: Floats, t: float) -> Floats:
            assert callable(by_place)
            places = from_unit(u, scale.bounds)
            g = np.asarray(by_place(places, scale.start + t * scale.length), dtype=np.float64)
            if g.shape != (len(u),):
                raise InputError(
                    Arg("growth"), f" must return an array ({len(u)},) for places {u.shape}"
                )
            if not np.isfinite(g).all():
                raise InputError(Arg("growth"), " must be finite everywhere in the box")
            return g * scale.length

        rate = unit if callable(by_place) else None
        return cls(sizes, pedigree(*clouds, reference, sizes, rate), turnover)

    def lives(self, n: int, rng: np.random.Generator) -> tuple[Lives, Floats | None]:
        """Of n people, and the knots (n, K, d) of each where they depend on it."""
        if self.pedigree is not None:
            lives, who = self.pedigree.lives(n, self.turnover, rng)
            return lives, self.pedigree.knots[who]
        assert self.sizes is not None
        return even_lives(n, self.sizes, self.turnover, rng), None


def even_lives(n: int, sizes: Sizes, turnover: float, rng: np.random.Generator) -> Lives:
    """Lives that have nothing to do with where people are; turnover: w, over the whole range."""
    size = sizes.at(_GRID)
    between = (size[1:] + size[:-1]) / 2 * np.diff(_GRID)
    births = np.maximum(np.diff(size), 0.0) + turnover * between
    hazard = np.maximum(-np.diff(np.log(size)), 0.0) + turnover * np.diff(_GRID)
    begun = np.append(size[0], births).cumsum()
    passed = np.append(0.0, hazard).cumsum()
    ranks, shift = rng.permutation(n), rng.uniform(size=2)
    begin = np.interp((ranks + shift[0]) / n * begun[-1], begun, _GRID)
    waiting = -np.log1p(-np.mod(ranks * _GOLDEN + shift[1], 1.0))
    end = np.interp(np.interp(begin, _GRID, passed) + waiting, passed, _GRID)
    return Lives(begin, end)


def pedigree(
    particles: Floats,
    weights: Floats,
    clock: Floats,
    reference: Reference,
    sizes: Sizes | None,
    rate: UnitRate | None,
) -> Pedigree:
    """Through weighted clouds (K, m, d), with weights (K, m), at times (K,).

    sizes: N(t); None if it follows from the rate.  rate: None if it is to be learned.
    """
    from scipy.spatial import cKDTree

    if sizes is not None:
        size = sizes.at(clock)
    else:
        assert rate is not None
        knots = zip(particles, weights, clock, strict=True)
        means = np.array([share @ rate(cloud, t) for cloud, share, t in knots])
        logs = np.append(0.0, np.cumsum(np.diff(clock) * (means[1:] + means[:-1]) / 2))
        size = np.exp(logs - logs.max())
    # people at the knots (K,): MOST_MATCHED on average, twice as many at most, one at least
    most = MOST_MATCHED * min(2.0, 1 / float(size.mean()))
    alive = np.maximum(np.rint(most * size), 1).astype(np.int64)
    shares = zip(particles, weights, alive, strict=True)
    clouds = [cloud[systematic(share, count)] for cloud, share, count in shares]
    past, here = clouds[0][:, None], np.arange(alive[0])  # everybody so far (S, k + 1, d)
    born, died, mother = (np.full(alive[0], value) for value in (-1, len(clock) - 1, -1))
    for k, (t, dt) in enumerate(zip(clock, np.diff(clock), strict=False)):
        cloud, later = clouds[k], clouds[k + 1]
        onward = np.asarray(reference.ahead(cloud, t, dt))
        if rate is not None:  # descendants, up to a factor
            logs = dt * (rate(cloud, t) + rate(onward, t + dt)) / 2
            grown = np.exp(logs - logs.max())
        else:
            some = (max(1, -(-len(side) // FITTED)) for side in (onward, later))
            grown = descendants(onward[:: next(some)], later[:: next(some)], onward)
        mothers = systematic(grown, alive[k + 1])  # in order, so that twins are neighbours
        to = matched(onward[mothers], later)
        if rate is None:
            # none goes APART farther than most: numbers are whole, and one too few here would
            # come from over there
            way = np.linalg.norm(onward[mothers] - later[to], axis=1)
            far = way > np.median(way) + APART
            mothers = mothers.copy()
            mothers[far] = cKDTree(onward).query(later[to[far]])[1]
            order = np.argsort(mothers, kind="stable")
            mothers, to = mothers[order], to[order]
        first = np.append(True, mothers[1:] != mothers[:-1])
        gone = np.setdiff1d(np.arange(alive[k]), mothers)
        daughters = here[mothers[~first]]  # numbered as their mothers, for now
        died[here[gone]] = k
        born = np.append(born, np.full(len(daughters), k))
        died = np.append(died, np.full(len(daughters), len(clock) - 1))
        mother = np.append(mother, daughters)
        who = here[mothers]
        who[~first] = len(past) + np.arange(len(daughters))
        past = np.concatenate([past, past[daughters]])
        now = past[:, -1].copy()  # the dead stay where they were
        now[here[gone]] = onward[gone]
        now[who] = later[to]
        past = np.concatenate([past, now[:, None]], axis=1)
        here = who[np.argsort(to)]
    return Pedigree(past, born, died, mother, clock, alive)


def descendants(x: Floats, y: Floats, places: Floats) -> Floats:
    """r (k,) of places (k, d), from people at x (n, d), carried on, and at y (m, d), learned.

    With f and g the potentials of x and y,  r = exp(h - f / APART^2),  and at any place h is that
    of the nearest x and
        f = (BLUR APART^2 h - soft max over y of g(y) - |place - y|^2 / 2) / (1 + BLUR).
    """
    from scipy.spatial.distance import cdist

    _, g, common = _potentials(x, y)
    h = common[cdist(places, x, "sqeuclidean").argmin(axis=1)]
    fit = _soft_max(g - cdist(places, y, "sqeuclidean") / 2, axis=1) / APART**2
    grown = (h + fit) / (1 + BLUR)
    return np.asarray(np.exp(grown - grown.max()))


def ancestors(clouds: Floats) -> Floats:
    """Of people (K, n, d) at the knots, those whose descendants are there at the last one.

    Their motion is that of lineages: a drift that is learned of everybody would carry those who
    vanish to where others multiply. Of y comes from x the share  exp((f(x) - |x - y|^2 / 2) / blur)
    of the sum over all x.
    """
    from scipy.spatial.distance import cdist

    made, weights = [clouds[-1]], np.ones(len(clouds[-1]))
    for x, y in zip(clouds[-2::-1], clouds[:0:-1], strict=True):
        log = (_potentials(x, y)[0][:, None] - cdist(x, y, "sqeuclidean") / 2) / (BLUR * APART**2)
        share = np.exp(log - log.max(axis=0))
        weights = (share / share.sum(axis=0)) @ weights
        made.append(x[systematic(weights, len(x))])
    return np.stack(made[::-1])


def _soft_max(values: Floats, axis: int) -> Floats:
    """blur log mean exp(values / blur)."""
    blur = BLUR * APART**2
    top = values.max(axis=axis, keepdims=True)
    means = np.exp((values - top) / blur).mean(axis=axis)
    return np.asarray(np.squeeze(top, axis) + blur * np.log(means))


def _potentials(x: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """f (n,) and g (m,) of people at x (n, d) and y (m, d), and h (n,), what groups of x grow."""
    from scipy.spatial.distance import cdist

    cost, among = cdist(x, y, "sqeuclidean") / 2, _groups(x)
    f, h = np.zeros(len(x)), np.zeros(len(x))
    for _ in range(ITERATIONS):
        g = -_soft_max(f[:, None] - cost, axis=0)
        f = (BLUR * APART**2 * h - _soft_max(g - cost, axis=1)) / (1 + BLUR)
        grown = h - f / APART**2
        h = np.log(among @ np.exp(grown - grown.max())) + grown.max()
    return f, g, h


def _groups(x: Floats) -> Floats:
    """Where STEPS steps between neighbours lead from each of x (n, d): chances (n, n)."""
    from scipy.spatial.distance import cdist

    squares = cdist(x, x, "sqeuclidean")
    width = np.sqrt(np.sort(squares, axis=1)[:, min(NEIGHBOUR, len(x) - 1)]) + _TINY
    near = np.exp(-squares / (width[:, None] * width))
    return np.linalg.matrix_power(near / near.sum(axis=1, keepdims=True), STEPS)


class Family(NamedTuple):
    """values: (n, q, d) with the past of the mothers.  lives: with births at the moments.

    parent: (n,) -1 for those who are there from the start, or find nobody.
    """

    values: Floats
    lives: Lives
    parent: Ints


def family(values: Floats, times: Floats, lives: Lives, ordered: Floats, axes: Axes) -> Family:
    """Of people with these paths (n, q + M, d) in shares of the box, at times (q,) and then at the
    `MOMENTS`.

    ordered: (d,) whether a feature has a direction: what is between mother and daughter then stays.
    axes: levels are those of the mother before and the daughter's own from birth on; what is fixed
    is always her own, and her mother is one who has it too, if there is any.
    """
    from scipy.spatial import cKDTree

    paths, when = values.copy(), np.append(times, MOMENTS)
    step = np.rint(lives.begin * (len(MOMENTS) - 1)).astype(np.int64)
    begin = MOMENTS[step]
    end = np.maximum(lives.end, begin)
    parent = np.full(len(paths), -1)
    fixed, apart_by = np.array(axes.fixed), np.where(axes.fixed, _ALIKE, 1.0)
    for k in np.unique(step[step > 0]):
        t, born = begin[step == k][0], np.flatnonzero(step == k)
        there = np.flatnonzero((step < k) & (end >= t))
        if not len(there):
            continue
        column = len(times) + k
        tree = cKDTree(apart_by * paths[there, column])
        nearest = tree.query(apart_by * paths[born, column])[1]
        mothers = parent[born] = there[nearest]
        mother, own = paths[mothers, column][:, None], paths[born, column][:, None]
        after = when > t
        share = np.clip((when[after] - t) / PARTING, 0.0, 1.0)
        fading = (1 - share) ** 2 * (1 + 2 * share)  # from 1 to 0, smoothly
        kept = axes.categories | fixed
        fade = np.where(kept, 0.0, fading[:, None])
        later = paths[np.ix_(born, after)]  # from the mother on, so that no rounding falls
        parted = np.where(ordered & ~kept, mother + (later - own), later + (mother - own) * fade)
        paths[np.ix_(born, after)] = np.clip(parted, 0.0, 1.0)
        inherited = np.where(fixed, paths[np.ix_(born, ~after)], paths[np.ix_(mothers, ~after)])
        paths[np.ix_(born, ~after)] = inherited
    return Family(paths[:, : len(times)], Lives(begin, end), parent)


def settled(
    values: Floats, clock: Floats, lives: Lives, scale: Scale, families: tuple[Floats, Axes] | None
) -> tuple[Floats, dict[str, Any]]:
    """Values (n, q, d) at times of the clock (q,), NaN where nobody is, and what `Paths` knows of
    them.

    values: in data units, of families also at the `MOMENTS`.  families: if people are born to
    others, the directions (d,) in which features go and which of them are levels or fixed.
    """
    born, parent = lives.begin, None
    if families is not None:
        directions, axes = families
        people = family(to_unit(values, scale.bounds), clock, lives, directions != 0, axes)
        lives, parent = people.lives, people.parent
        values = np.clip(from_unit(people.values, scale.bounds), *scale.bounds.T)
        root = np.arange(len(parent))  # the first of everybody's ancestors
        while (up := parent[root] >= 0).any():
            root[up] = parent[root[up]]
        born = lives.begin[root]
    values[~Lives(born, lives.end).at(clock)] = np.nan
    when = scale.start + np.stack([lives.begin, lives.end], axis=1) * scale.length
    return values, {"present": lives.at(clock), "lives": when, "parent": parent}
