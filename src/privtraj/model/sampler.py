"""The sampler: curves carry people, people become paths. All of it is post-processing.

Everybody is a draw of `Carrier.people`: along curves of least action, along chains over couplings,
or on foot in a domain. Beside these a sampler knows who is there at all (`population`), what is
asked of people (`Conditions`), and what a table may show of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, get_args

import numpy as np

from privtraj.base.arrays import Floats, Ints, systematic, with_constant_shares
from privtraj.base.errors import Arg, InputError, Said, is_whole, listed
from privtraj.base.space import as_user_times, from_unit, moment, to_unit, unit_time, written_times
from privtraj.columns.conditions import Conditions, in_order
from privtraj.columns.kinds import Category, Column, Number, decoded, of_tables
from privtraj.domain.domain import Plot
from privtraj.domain.walking import OnFoot, couplings_inside, parts_of
from privtraj.model.paths import Paths, fill_in_blocks
from privtraj.model.record import Record
from privtraj.motion.couplings import CouplingName, Couplings, Discrete, couple
from privtraj.motion.curves import Carried, Carrier, Curves, fine_stops
from privtraj.motion.cycle import Cycle
from privtraj.motion.diffusions import Brownian
from privtraj.motion.growth import LEARNED
from privtraj.motion.population import MOMENTS, Lives, Population, ancestors, settled
from privtraj.motion.process import FITTED, Interpolation, Points, Reference, Scale, even_clouds
from privtraj.motion.reference import Inertia
from privtraj.motion.states import (
    OnNumbers,
    Parts,
    Transitions,
    filled,
    least_action_of,
    number_names,
)

MOST_PATHS = 10**9
FEWEST_PARTICLES = 5
"""From which people under conditions are drawn: fewer are single people of the model, drawn again
and again."""
LEAST_SHARE = 1e-3
"""Of people who meet conditions: it takes a thousand draws to find one then, and what a model knows
of so few is noise."""
FEWEST_TRIED = 10_000
"""People who are drawn before it is said that those who meet conditions are too few."""
MOST_NUMBERS = 2**25
"""Of people drawn at once while those who meet conditions are looked for: 256 MB."""
_MOMENT = 1e-6  # share of the range in which any process is as Brownian motion


class How(NamedTuple):
    """How people are drawn. noise: whether they have offsets of their own.

    coupling, interpolation: by which couplings and how between knots, if not as usual.
    """

    rng: np.random.Generator
    noise: bool = True
    interpolation: Interpolation | None = None
    coupling: CouplingName | None = None
    branching: bool = False


@dataclass(frozen=True, eq=False)
class Sampler:
    """Draws people of a record, whose parts it computes once, when they are needed."""

    record: Record
    _coupled: dict[str, Couplings] = field(default_factory=dict)

    # People ------------------------------------------------------------------------------------

    def paths(self, n: int, times: Any, how: How, where: Any, at_start: Any) -> Paths:
        """n people at any times inside the range; where, at_start: conditions on them."""
        record = self.record
        if not (is_whole(n) and 1 <= n <= MOST_PATHS):
            raise InputError(f"the number of paths must be a whole number from 1 to {MOST_PATHS}")
        if how.interpolation is not None and how.interpolation not in get_args(Interpolation):
            raise InputError(
                f"interpolation must be 'bridge', 'linear' or 'spline', not '{how.interpolation}'"
            )
        if how.coupling is not None:
            _check_coupling(how.coupling)
        if how.branching and self.record.growth is None:
            raise InputError(
                Arg("branching"),
                " needs a population that grows: ",
                Said("say how, by with_growth", "fit the model with --growth"),
            )
        at = self._query_times(times)
        asked = Conditions.declared(self.shown, where, at_start)
        if how.branching and asked:
            raise InputError(
                Arg("branching"),
                " needs the mothers of everybody: leave out ",
                Arg("where"),
                " and ",
                Arg("at_start"),
            )
        scale = record.scale
        read = np.append(at, scale.start + MOMENTS * scale.length) if how.branching else at
        draw = self._conditioned if asked else self._drawn
        values, lives = draw(n, read, how, asked)
        there: dict[str, Any] = {}
        if lives is not None:
            ways = record.constraints.directions(record.features)
            families = (ways, self.parts.axes) if how.branching else None
            clock = unit_time(at, record.knots)
            values, there = settled(values, clock, lives, scale, families)
        names = tuple(one.name for one in self.shown)
        there |= {"columns": self.shown, "ground": self.region}
        for word in ("precision", "constant", "zone"):
            there[word] = getattr(record.constraints, word)
        return Paths(self._shown(values), at, names, record.time_name, record.datetime, **there)

    def _drawn(
        self, n: int, at: Floats, how: How, asked: Conditions
    ) -> tuple[Floats, Lives | None]:
        """Values (n, q, d) of n people at times (q,), and their lives where people come and go.

        asked: leaves out curves along which nobody can be so; fewer than n people then.
        """
        lives = knots = None
        if self.record.growth is not None:
            lives, knots = self._population(how.coupling).lives(n, how.rng)
        return self._values(n, at, how, knots, asked if lives is None else None), lives

    def _conditioned(
        self, n: int, at: Floats, how: How, asked: Conditions
    ) -> tuple[Floats, Lives | None]:
        """n people who satisfy the conditions: drawn until there are as many."""
        drawn: list[Floats] = []
        begin_end: list[Floats] = []
        kept, tried = 0, 0
        most = max(1, MOST_NUMBERS // (len(at) * len(self.record.columns)))
        while kept < n:
            left = (n - kept) * max(tried, 1) / max(kept, 1)
            count = int(min(max(1.2 * left, FEWEST_TRIED), most))
            values, lives = self._drawn(count, at, how, asked)
            held = asked.hold(self._shown(values.copy()), at)
            kept, tried = kept + int(held.sum()), tried + count
            if tried >= FEWEST_TRIED and kept < tried * LEAST_SHARE:
                raise _too_few()
            drawn.append(values[held])
            if lives is not None:
                begin_end.append(np.stack(lives)[:, held])
        values = np.concatenate(drawn)[:n]
        return values, Lives(*np.hstack(begin_end)[:, :n]) if begin_end else None

    def _values(
        self,
        n: int,
        at: Floats,
        how: How,
        knots: Floats | None = None,
        asked: Conditions | None = None,
    ) -> Floats:
        """(n, q, d) of people at times (q,) in data units; knots: (n, K, d), if they have some.

        asked: see `_drawn`.
        """
        record, where = self.record, unit_time(at, self.record.knots)
        carrier = self._carrier(n, how, knots)
        if asked:
            possible = carrier.possible(asked, where)
            if possible.particles is not None and possible.particles < FEWEST_PARTICLES:
                raise _too_few()
            carrier = possible.carrier
            n = n if possible.people is None else possible.people
        width = record.bandwidth if how.noise else np.zeros_like(record.bandwidth)
        if isinstance(self._reference, Cycle) and isinstance(carrier, Curves):
            width = np.full(len(carrier.clock), width.mean())  # whoever waits is quite still
        places = carrier.people(n, where, width, how.interpolation, how.rng)
        bounds = np.tile(record.bounds, (len(at), 1))  # of all numbers of a path
        values, d, region = np.empty((n, len(bounds))), len(record.columns), self.region
        xy = np.flatnonzero(self.parts.moving)[list(region.axes) if region else []]

        def fill(people: slice, rng: np.random.Generator) -> None:
            unit = np.ascontiguousarray(places(people, rng)).reshape(people.stop - people.start, -1)
            np.clip(from_unit(unit, bounds), *bounds.T, out=values[people])
            if region is not None:  # inside after rounding, too
                ground = unit.reshape(-1, d)[:, xy].astype(np.float64)
                values[people].reshape(-1, d)[:, xy] = region.in_data_units(ground)

        fill_in_blocks(fill, n, len(bounds), how.rng)
        return values.reshape(n, len(at), -1)

    def _shown(self, values: Floats) -> Floats:
        """Values (n, q, e) of tables, from (n, q, d), which are changed: those that can be, NaN
        where flags say so, without the flags."""
        for k, column in enumerate(self.record.columns):
            if type(column) is not Number:
                values[..., k] = column.rounded(values[..., k])
        table = decoded(self.record.columns, values)
        return self.record.constraints.rounded(table, self.shown)

    def carried(self, numbers: int, people: int, stops: int, seed: int = 0) -> Carried:
        """See `TrajectoryModel.carried`."""
        record, rng, clock = self.record, np.random.default_rng(seed), self.clock
        process, width, on_foot = self._process, record.bandwidth, self.region is not None
        spline: bool | None = None  # else people go in some way that has to be drawn
        if not (on_foot or process.forgets or isinstance(process, Cycle)):
            if self._directions.any() or isinstance(process, Inertia):
                spline = True
            elif type(process).bridge is Reference.bridge or isinstance(process, Brownian):
                spline = False
        if spline is None:
            clock = fine_stops(clock, stops)
            width = np.interp(clock, self.clock, width)
        most = int(np.clip(numbers // (len(clock) * len(record.columns)), FEWEST_PARTICLES, people))
        lives, mine = None, None
        if record.growth is not None:
            lives, mine = self._population(None).lives(most, rng)
        if spline is None:
            at = record.scale.start + clock * record.scale.length
            places = to_unit(self._values(most, at, How(rng, on_foot), mine), record.bounds)
        else:
            carrier = self._carrier(most, How(rng), mine)
            assert isinstance(carrier, Curves)
            parts, knots = self.parts, carrier.knots
            places = (knots if parts.plain else filled(knots, clock, parts)).astype(np.float64)
            ways = self._directions, clock, self._rates
            places[..., parts.moving] = in_order(places[..., parts.moving], *ways)
        momentary = float(process.variance(np.array([_MOMENT]))[0] / _MOMENT)
        thin = len(places) > most
        return Carried(
            places[systematic(np.ones(len(places)), most)] if thin else places,
            clock,
            np.zeros_like(width) if on_foot else width,
            0.0 if on_foot else float(record.bandwidth.mean()),
            process.forgets if spline is None else spline,
            0.0 if on_foot or spline else momentary,
            not (thin or spline is None or momentary or mine is not None),
            None if lives is None else np.stack(lives, axis=1),
            mine is not None,
        )

    # What carries them -------------------------------------------------------------------------

    def _carrier(self, n: int, how: How, knots: Floats | None) -> Carrier:
        """Of n people.  knots: (n, K, d) of those who have some; else they are those of least
        action, or of chains over the couplings."""
        if self.region is not None:
            made = self.couplings("exact")
            numbers = self._inside(*self._steady[:2])
            return OnFoot(self.region, made, numbers, self.clock, self._chained, self.parts)
        if knots is None and how.coupling is None and not self._varies:
            return self._curves
        if knots is not None:
            return self._through(knots)
        chain = self.couplings(how.coupling or "entropic").walk(n, how.rng)
        process = self._process if how.coupling is None else Brownian(self.record.diffusivity)
        return replace(self._chained(chain), process=process, usual="bridge", alone=True)

    def _through(self, places: Points) -> Curves:
        """The curves through places (N, K, d) at the knots."""
        places = places.astype(np.float32, copy=False)
        parts, ways = self.parts, (self._directions, self._rates)
        return Curves(places, self.clock, parts, self._process, *ways)

    def _chained(self, chain: Ints) -> Curves:
        """The curves of chains (n, K) of particles."""
        particles = self._steady[0].astype(np.float32)
        return self._through(particles[np.arange(len(particles)), chain])

    @cached_property
    def _curves(self) -> Curves:
        """Along which people move where the reference means least action."""
        if isinstance(self._reference, Cycle):
            if not self.parts.plain:
                raise InputError("'cycle' is for numbers alone: use another reference process")
            clouds = even_clouds(self.record.particles, self.record.weights)
            lengths = self.record.diagnostics.get("people_lengths") if self.record.curves else None
            ends = None if lengths is None else np.append(0.0, np.cumsum(lengths) / sum(lengths))
            paths, stops = self._reference.rounds(clouds, self.clock, ends)
            return replace(self._through(paths), clock=stops)
        if self.record.curves and not self._reference.couples:
            weights, through = self.record.weights.T, self.record.particles.swapaxes(0, 1)
            vary = np.ptp(weights, axis=0).any()
            return replace(self._through(through), weights=weights if vary else None)
        return self._through(least_action_of(*self._steady, self.clock, self.parts, self._fitted))

    @cached_property
    def _steady(self) -> tuple[Floats, Floats, Ints]:
        """Particles (K, m, d), weights (K, m), and groups (K, m) of those who may become each
        other, with the same shares at all times: nobody changes what is fixed."""
        particles, weights = self.record.particles, self.record.weights
        groups = self.parts.groups(particles)
        if self.parts.plain:
            return particles, weights, groups
        if self.region is not None:
            part = parts_of(self.region, self._inside(particles, weights))
            groups = groups * (int(part.max()) + 1) + part
        return with_constant_shares(particles, weights, groups)

    def _inside(self, particles: Floats, weights: Floats) -> Floats:
        """The numbers that move (K, m, dm), in the domain."""
        assert self.region is not None
        return self.region.snapped(self.parts.numbers(particles, weights))

    def couplings(self, coupling: CouplingName) -> Couplings:
        """See `TrajectoryModel.couplings`."""
        _check_coupling(coupling)
        key = coupling if self.region is None else "inside"
        if key not in self._coupled:
            particles, weights, groups = self._steady
            mixed = not self.parts.plain
            discrete = Discrete(self.parts.codes(particles), groups) if mixed else None
            if self.region is not None:
                numbers = self._inside(particles, weights)
                made = couplings_inside(self.region, numbers, weights, discrete)
            else:
                numbers = self.parts.numbers(particles, weights)
                process = self._fitted if self._varies else Brownian(self.record.diffusivity)
                gaps = np.diff(self.clock)
                made = couple(numbers, weights, gaps, process, coupling, discrete)
            self._coupled[key] = made
        return self._coupled[key]

    def transitions(self, column: str) -> Transitions:
        """See `TrajectoryModel.transitions`."""
        known = {one.name: one.labels for one in self.shown if isinstance(one, Category)}
        if column not in known:
            among = f"they are {listed([*known])}" if known else "there are none"
            raise InputError(f"'{column}' is not among the columns that are categories: {among}")
        k, axes = self.record.features.index(column), self.parts.axes
        count = axes.levels[k]
        if self._varies or self.region is not None:
            chain, levels = self.couplings("entropic"), axes.level_of(self._steady[0])[..., k]
            pairs = zip(chain.weights, chain.matrices, levels[:-1], levels[1:], strict=False)
            mass, one = [], np.eye(count)
            for weights, matrix, before, after in pairs:
                mass.append((one[before] * weights[:, None]).T @ matrix @ one[after])
            moved = np.stack(mass)
        else:
            along = axes.level_of(self._curves.knots)[..., k]  # of curves of equal weight
            steps = (along[:, :-1] * count + along[:, 1:]).T
            counts = np.stack([np.bincount(step, minlength=count**2) for step in steps])
            moved = counts.reshape(-1, count, count) / len(along)
        times = as_user_times(self.record.knots, self.record.datetime)
        return Transitions(known[column], times, moved)

    # What the record says, as people need it ---------------------------------------------------

    @cached_property
    def parts(self) -> Parts:
        """What the columns do along a path."""
        return Parts(self.record.columns)

    @cached_property
    def shown(self) -> tuple[Column, ...]:
        """The columns of a table: all but flags."""
        return of_tables(self.record.columns)

    @cached_property
    def clock(self) -> Floats:
        """(K,) of the knots, from 0 to 1."""
        return unit_time(self.record.knots, self.record.knots)

    @cached_property
    def numbers(self) -> Scale:
        """Of the numbers that move, which is all that a reference process is about."""
        return self.record.scale._replace(bounds=self.record.bounds[self.parts.moving])

    @cached_property
    def region(self) -> Plot | None:
        """The domain in the unit cube of the numbers that move, if there is one."""
        if self.record.domain is None:
            return None
        return self.record.domain.ground(number_names(self.record.columns), self.numbers.bounds)

    @cached_property
    def _directions(self) -> Floats:
        return self.record.constraints.directions(number_names(self.record.columns))

    @cached_property
    def _rates(self) -> Floats:
        """(dm,) of numbers that go by themselves, in shares of the box per range of time."""
        names, scale = number_names(self.record.columns), self.numbers
        rates = self.record.constraints.rates(names, scale.length, self.record.datetime)
        return rates / np.ptp(scale.bounds, axis=1)

    @cached_property
    def _reference(self) -> Reference:
        """In the unit cube; where no number moves, nobody does."""
        moves = self.parts.moving.any()
        return self.record.reference.within(self.numbers) if moves else Reference()

    @property
    def _varies(self) -> bool:
        return bool(self._reference.variance(np.ones(1)).any())

    @cached_property
    def _fitted(self) -> Reference:
        """Fitted to the particles, where it learns."""
        numbers = self.parts.numbers(self.record.particles, self.record.weights)
        clouds, growth = even_clouds(numbers, self.record.weights, FITTED), self.record.growth
        if growth is not None and growth.by_place == LEARNED:
            clouds = ancestors(clouds)
        return self._reference.fitted(clouds, self.clock)

    @property
    def _process(self) -> Reference:
        """By which people move between their knots."""
        return self._fitted if self._reference.couples or self._varies else self._reference

    @cached_property
    def _changing(self) -> Population:
        record, process = self.record, self._fitted
        assert record.growth is not None
        return Population.of(
            record.growth,
            record.scale,
            record.diagnostics,
            (record.particles, record.weights, self.clock),
            process if self.parts.plain else OnNumbers(process, self.parts.moving),
        )

    def _population(self, coupling: CouplingName | None) -> Population:
        """Those who are drawn, where they come and go."""
        growth = self.record.growth
        by_place = growth is not None and growth.by_place is not None
        if by_place and (coupling is not None or self._reference.forgets):
            raise InputError(
                "growth by place decides who becomes whom: leave out ",
                Arg("coupling"),
                ", and the memory of the reference process",
            )
        return self._changing

    def _query_times(self, times: Any) -> Floats:
        record = self.record
        if times is None:
            return record.numeric_times
        pairs = [moment(value, Arg("times")) for value in np.atleast_1d(np.asarray(times)).ravel()]
        if not pairs:
            raise InputError(Arg("times"), " is empty: give at least one time")
        if any(datetime != record.datetime for _, datetime in pairs):
            kind = "dates" if record.datetime else "numbers"
            raise InputError(Arg("times"), f" must be {kind}, as the model's times are")
        at = np.array([value for value, _ in pairs])
        if at.min() < record.knots[0] or at.max() > record.knots[-1]:
            first, last = written_times(record.knots[[0, -1]], record.datetime)
            raise InputError(
                Arg("times"), f" must lie between {first} and {last}, the model's range"
            )
        return at


def _check_coupling(coupling: str) -> None:
    if coupling not in get_args(CouplingName):
        raise InputError(f"coupling must be 'entropic' or 'exact', not '{coupling}'")


def _too_few() -> InputError:
    return InputError(
        "too few people of the model are as ",
        Arg("where"),
        " and ",
        Arg("at_start"),
        f" ask, fewer than {FEWEST_PARTICLES} particles or one person in {1 / LEAST_SHARE:g}: ask "
        "for less",
    )
