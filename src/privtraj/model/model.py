"""The released model: private marginals, the certificate, and unlimited sampling.

A model holds nothing that was not paid for: particles, bandwidths, diffusivity, public settings,
diagnostics of released quantities, and the certificate. Everything it can do is post-processing,
how people move included: the reference process, and what is public about features.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from privtraj.base import display
from privtraj.base.arrays import Floats, Ints, along_main_axis, equal_weight, steadied, systematic
from privtraj.base.errors import Arg, InputError, Said, is_whole, listed
from privtraj.base.formats import load as load_by_name
from privtraj.base.space import as_user_times, from_unit, hat_functions, moment, to_unit, unit_time
from privtraj.columns.axes import Axes, decoded
from privtraj.columns.conditions import NONE, Conditions, Constraints, in_order
from privtraj.columns.kinds import (
    Category,
    Column,
    Label,
    Number,
    of_tables,
    plain_numbers,
    to_dict,
)
from privtraj.columns.precision import written_times
from privtraj.data.snapshots import Snapshots
from privtraj.domain.couplings import couplings_inside, parts_of
from privtraj.domain.domain import Domain, Plot
from privtraj.model import checks as model_checks
from privtraj.model import file as model_file
from privtraj.model.paths import Paths, fill_in_blocks
from privtraj.motion.couplings import CouplingName, Couplings, Discrete, couple
from privtraj.motion.curves import Carried, Curves, Motion, fine_stops, momentary, smooth_between
from privtraj.motion.diffusions import Brownian
from privtraj.motion.growth import Growth
from privtraj.motion.population import MOMENTS, Lives, Population, settled
from privtraj.motion.process import FITTED, Interpolation, Points, Reference, Scale, even_clouds
from privtraj.motion.reference import by_itself, declared
from privtraj.motion.states import (
    OnNumbers,
    Parts,
    Transitions,
    filled,
    least_action_of,
    moved_mass,
    number_names,
)
from privtraj.privacy import signatures
from privtraj.privacy.certificate import Certificate
from privtraj.privacy.ledger import up
from privtraj.recipe import Recipe

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


class _How(NamedTuple):
    """How people are drawn."""

    rng: np.random.Generator
    noise: bool
    interpolation: Interpolation | None
    coupling: CouplingName | None


class _Unset(Reference):
    """Until the diffusivity is known, and where no number moves: nobody does."""


@dataclass(frozen=True, eq=False)
class TrajectoryModel:
    """Private marginals that can be sampled as trajectories; made by `TrajectorySynthesizer.fit`.

    particles: (K, m, d) in the unit cube.  weights: (K, m), rows sum to 1.
    bandwidth: (K,) standard deviation of one person around a particle, in the unit cube.
    diffusivity: variance per time range and coordinate of the unit cube.
    numeric_times: (T,) times of interest.  bounds: (d, 2).
    cloud_size: particles per time in `marginals`.
    knots: (K,) times of the particles, by default the times of interest.
    curves: whether particle i of all knots is one curve, straight between them.
    reference: how people move, in data units; by default Brownian motion of that diffusivity.
    constraints: what is public about features.
    domain: where people can be at all; every path stays there.
    growth: how the number of people changes; None: everybody is there all the time.
    columns: d of them, what each coordinate of a particle means; by default numbers. A category's
        coordinate is in the cell of a level; flags at the end say which numbers are missing.
    settings: how it was made.  recipe: what was asked for, whole; None where no recipe made it, and
        in files of version 0.2.  diagnostics: released quantities that tell how well it went.
    """

    particles: Floats
    weights: Floats
    bandwidth: Floats
    diffusivity: float
    numeric_times: Floats
    bounds: Floats
    features: tuple[str, ...]
    time_name: str
    datetime: bool
    certificate: Certificate
    cloud_size: int = 256
    settings: dict[str, Any] = field(default_factory=dict)
    diagnostics: dict[str, Any] = field(default_factory=dict)
    knots: Floats = field(default_factory=lambda: np.empty(0))
    curves: bool = False
    reference: Reference = field(default_factory=_Unset)
    constraints: Constraints = NONE
    domain: Domain | None = None
    growth: Growth | None = None
    columns: tuple[Column, ...] = ()
    recipe: Recipe | None = None

    def __post_init__(self) -> None:
        if all(type(one) is Number and not (one.missing or one.fixed) for one in self.columns):
            object.__setattr__(self, "columns", plain_numbers(self.features, self.bounds))
        object.__setattr__(self, "diagnostics", _without_nan(self.diagnostics))
        if len(self.knots) == 0:
            object.__setattr__(self, "knots", self.numeric_times)
        if isinstance(self.reference, _Unset):
            object.__setattr__(self, "reference", Brownian(self.diffusivity))

    @property
    def times(self) -> NDArray[Any]:
        """(T,) times of interest in data units; datetime64 where the data had dates."""
        return as_user_times(self.numeric_times, self.datetime)

    @cached_property
    def axes(self) -> Axes:
        """Which columns are numbers, and which are levels."""
        return self._parts.axes

    @cached_property
    def _parts(self) -> Parts:
        return Parts(self.columns)

    @property
    def marginals(self) -> Floats:
        """(T, n, d) equal-weight particles in data units: heavy particles are repeated.

        They lack the observation noise of released people; `sample` adds it. Categories are levels,
        and numbers that are missing NaN.
        """
        if self._parts.plain:
            particles, weights = self._at_times(self.particles), self._at_times(self.weights)
        else:
            particles, weights = self._split_at_times()
        if self.plot is not None:
            moving = self._parts.moving
            particles[..., moving] = self.plot.snapped(particles[..., moving])
        unit = equal_weight(particles, weights, self.cloud_size)
        pairs = enumerate(self.columns)
        values = np.stack([one.from_unit(unit[..., k]) for k, one in pairs], axis=-1)
        values[..., : len(self._shown)] = decoded(self.columns, values)
        return values

    def _split_at_times(self) -> tuple[Floats, Floats]:
        """Particles (T, 2 m, d) and weights (T, 2 m) of mixed columns: numbers are between those
        of two knots, levels are those of the one or of the other, with the shares of both."""
        whole: Points = self.particles
        if self.curves:
            whole = filled(whole.swapaxes(0, 1), self.knots, self._parts).swapaxes(0, 1)
        numbers, weights = self._at_times(whole), self._at_times(self.weights)
        basis = hat_functions(self.numeric_times, self.knots)
        used = basis > 0
        left, right = used.argmax(axis=1), used.shape[1] - 1 - used[:, ::-1].argmax(axis=1)
        sides = [
            np.where(self.axes.numbers, numbers, self.particles[knot]) for knot in (left, right)
        ]
        share = np.where(left == right, 0.0, basis[np.arange(len(left)), right])[:, None]
        both = np.concatenate([(1 - share) * weights, share * weights], axis=1)
        return np.concatenate(sides, axis=1), both

    @cached_property
    def plot(self) -> Plot | None:
        """The domain in the unit cube of the numbers that move, if there is one."""
        if self.domain is None:
            return None
        return self.domain.ground(number_names(self.columns), self._number_scale.bounds)

    def _at_times(self, values: Points) -> Floats:
        """What particles have at the knots (K, m, ...), at the times of interest (T, m, ...)."""
        return np.einsum("tk,k...->t...", hat_functions(self.numeric_times, self.knots), values)

    def sample(
        self,
        n: int,
        times: Any = None,
        *,
        seed: int | None = None,
        observation_noise: bool = True,
        interpolation: Interpolation | None = None,
        coupling: CouplingName | None = None,
        branching: bool = False,
        where: Mapping[str, Any] | None = None,
        at_start: Mapping[str, Any] | None = None,
    ) -> Paths:
        """n synthetic people at any times inside the range (default: the times of interest).

        They move as the reference process says. A path carries the person's own offset, observation
        noise of the model's bandwidth, one direction per person, so that it is smooth while every
        marginal has its full width. Sampling costs no privacy.

        coupling: instead, particles of neighbouring knots are coupled under Brownian motion,
            "entropic", or by optimal transport, "exact".
        interpolation: instead, between knots "bridge", "linear" or "spline".
        branching: of a population that grows: who is born has a mother among the others, and shares
            her past. n counts everybody who ever lived: those at the end, if nobody leaves.
        where: only people who are so at all these times, {column: value}: one value of a category
            or a list of them, (low, high) of a number or a date, None for missing.
        at_start: only people who are so at the first of these times.

        With a domain, people walk: couplings are exact ones by the length of the shortest way, and
        between knots everybody goes it at constant speed, whatever `interpolation` and `coupling`.
        """
        _check_request(n, interpolation, coupling)
        at = self._query_times(times)
        rng = np.random.default_rng(seed)
        how = _How(rng, observation_noise, interpolation, coupling)
        asked = Conditions.declared(self._shown, where, at_start)
        if branching and self.growth is None:
            raise InputError(
                Arg("branching"),
                " needs a population that grows: ",
                Said("say how, by with_growth", "fit the model with --growth"),
            )
        if branching and asked:
            raise InputError(
                Arg("branching"),
                " needs the mothers of everybody: leave out ",
                Arg("where"),
                " and ",
                Arg("at_start"),
            )
        first, last = self.knots[[0, -1]]
        read = np.append(at, first + MOMENTS * (last - first)) if branching else at
        if asked:
            values, lives = self._those(n, read, how, asked)
        else:
            values, lives = self._everybody(n, read, how)
        there: dict[str, Any] = {}
        if lives is not None:
            ways = self.constraints.directions(self.features)
            clock = unit_time(at, self.knots)
            families = (ways, self.axes) if branching else None
            values, there = settled(values, clock, lives, self._scale, families)
        names = tuple(one.name for one in self._shown)
        data = self._finished(values)
        there["precision"] = self.constraints.precision
        return Paths(data, at, names, self.time_name, self.datetime, columns=self._shown, **there)

    def _everybody(
        self, n: int, at: Floats, how: _How, asked: Conditions | None = None
    ) -> tuple[Floats, Lives | None]:
        """Values (n, q, d) of n people at times (q,), and their lives where people come and go.

        asked: leaves out curves along which nobody can be so; fewer than n people then.
        """
        if self.growth is None:
            return self._values(n, at, how, None, asked), None
        lives, knots = self._population(how.coupling).lives(n, how.rng)
        return self._values(n, at, how, knots), lives

    def _those(
        self, n: int, at: Floats, how: _How, asked: Conditions
    ) -> tuple[Floats, Lives | None]:
        """The same of n people who are as they must: drawn until there are as many."""
        found: list[Floats] = []
        begin_end: list[Floats] = []
        kept, tried, most = 0, 0, max(1, MOST_NUMBERS // (len(at) * len(self.columns)))
        while kept < n:
            left = (n - kept) * max(tried, 1) / max(kept, 1)
            count = int(min(max(1.2 * left, FEWEST_TRIED), most))
            values, lives = self._everybody(count, at, how, asked)
            held = asked.hold(self._finished(values.copy()), at)
            kept, tried = kept + int(held.sum()), tried + count
            if tried >= FEWEST_TRIED and kept < tried * LEAST_SHARE:
                raise _too_few()
            found.append(values[held])
            if lives is not None:
                begin_end.append(np.stack(lives)[:, held])
        values = np.concatenate(found)[:n]
        return values, Lives(*np.hstack(begin_end)[:, :n]) if begin_end else None

    @cached_property
    def _shown(self) -> tuple[Column, ...]:
        """The columns of a table: all but flags."""
        return of_tables(self.columns)

    def _finished(self, values: Floats) -> Floats:
        """Values (n, q, e) of tables, from (n, q, d), which are changed: those that can be, NaN
        where flags say so, without the flags."""
        for k, column in enumerate(self.columns):
            if type(column) is not Number:
                values[..., k] = column.rounded(values[..., k])
        return self.constraints.rounded(decoded(self.columns, values), self._shown)

    def _values(
        self,
        n: int,
        at: Floats,
        how: _How,
        knots: Floats | None = None,
        asked: Conditions | None = None,
    ) -> Floats:
        """(n, q, d) of people at times (q,) in data units; knots: (n, K, d), if they have some.

        asked: see `_everybody`.
        """
        rng = how.rng
        if self.plot is not None:
            return self._inside(self.plot, n, at, rng, how.noise)
        curves, process, usual = self._carried_by(n, how.coupling, knots, rng)
        if asked is not None and not self._parts.plain:
            alone = len(curves.knots) == n  # everybody has a chain of their own
            curves = self._possible(curves, unit_time(at, self.knots), asked, process)
            n = len(curves.knots) if alone else n
        places = curves.people(
            n,
            unit_time(at, self.knots),
            Motion(
                self.bandwidth if how.noise else np.zeros_like(self.bandwidth),
                process,
                self.constraints.directions(number_names(self.columns)),
                how.interpolation or usual,
            ),
            rng,
        )
        bounds = np.tile(self.bounds, (len(at), 1))  # of all numbers of a path
        values = np.empty((n, len(bounds)))

        def fill(people: slice, rng: np.random.Generator) -> None:
            unit = np.ascontiguousarray(places(people, rng)).reshape(people.stop - people.start, -1)
            np.clip(from_unit(unit, bounds), *bounds.T, out=values[people])

        fill_in_blocks(fill, n, len(bounds), rng)
        return values.reshape(n, len(at), -1)

    def _possible(
        self, curves: Curves, where: Floats, asked: Conditions, process: Reference
    ) -> Curves:
        """Those along which somebody can be as they must at times (q,) in [0, 1]; all of them where
        people change places. Too few particles there are refused."""
        held = curves.can_be(asked, where)
        knot = int(np.searchsorted(curves.clock, where.min(), side="right")) - 1
        if len(np.unique(curves.knots[held, knot], axis=0)) < FEWEST_PARTICLES:
            raise _too_few()
        return curves if process.forgets else curves._replace(knots=curves.knots[held])

    def _carried_by(
        self,
        n: int,
        coupling: CouplingName | None,
        knots: Floats | None,
        rng: np.random.Generator,
    ) -> tuple[Curves, Reference, Interpolation | None]:
        """The curves that carry n people, by which process between their knots, and how, unless
        somebody says; None: as the process does.

        knots: (n, K, d) of people who have some; else they are those of least action, or of chains
        over the couplings.
        """
        suited, varies = self._suited, self._reference.variance(np.ones(1)).any()
        if knots is not None:
            return self._through(knots), suited, None
        if coupling is None and not varies:
            return self._curves, suited, None
        chain = self.couplings(coupling or "entropic").walk(n, rng)
        particles = self._steady[0].astype(np.float32)
        process = suited if coupling is None else Brownian(self.diffusivity)
        return self._through(particles[np.arange(len(particles)), chain]), process, "bridge"

    def _through(self, places: Points) -> Curves:
        """The curves through places (N, K, d) at the knots."""
        places, clock = places.astype(np.float32, copy=False), unit_time(self.knots, self.knots)
        return Curves(places, clock, self._parts)

    @cached_property
    def _steady(self) -> tuple[Floats, Floats, Ints]:
        """Particles (K, m, d), weights (K, m), and groups (K, m) of those who may become each
        other, with the same shares at all times: nobody changes what is fixed."""
        groups = self._parts.groups(self.particles)
        if self.plot is not None and not self._parts.plain:
            numbers = self.plot.snapped(self._parts.numbers(self.particles, self.weights))
            part = parts_of(self.plot, numbers)
            groups = groups * (int(part.max()) + 1) + part
        if self._parts.plain:
            return self.particles, self.weights, groups
        return steadied(self.particles, self.weights, groups)

    def _inside(
        self, plot: Plot, n: int, at: Floats, rng: np.random.Generator, noise: bool
    ) -> Floats:
        """n people (n, q, d) in data units who walk in the domain."""
        from privtraj.domain.paths import sample_inside

        clock, where = (unit_time(t, self.knots) for t in (self.knots, at))
        width = self.bandwidth if noise else np.zeros_like(self.bandwidth)
        chain = self.couplings("exact").walk(n, rng)
        parts, particles = self._parts, self._steady[0]
        bounds, numbers = self._number_scale.bounds, parts.numbers(*self._steady[:2])
        inside = sample_inside(plot, bounds, plot.snapped(numbers), chain, width, clock, where, rng)
        if parts.plain:
            return inside
        states = self._through(particles[np.arange(len(clock)), chain])
        unit = states.others(where, float(width.mean()))(np.arange(n), rng)
        values = from_unit(unit, self.bounds)
        values[..., parts.moving] = inside
        return values

    def carried(self, numbers: int, people: int, stops: int, seed: int = 0) -> Carried:
        """Curves from which somebody else can draw people as `sample` does, of so many numbers in
        all: at most `people` of them, through so many stops unless there are more knots.

        In a domain they are people as they are, with their offsets, as these depend on walls.
        """
        rng, clock = np.random.default_rng(seed), unit_time(self.knots, self.knots)
        ways = self.constraints.directions(number_names(self.columns))
        process, width = self._suited, self.bandwidth
        spline = None if self.plot is not None else smooth_between(process, ways)
        if spline is None:
            clock = fine_stops(clock, stops)
            width = np.interp(clock, unit_time(self.knots, self.knots), width)
        most = int(np.clip(numbers // (len(clock) * len(self.columns)), FEWEST_PARTICLES, people))
        lives, mine = None, None
        if self.growth is not None:
            lives, mine = self._population(None).lives(most, rng)
        if spline is None:
            at = self.knots[0] + clock * (self.knots[-1] - self.knots[0])
            how = _How(rng, self.plot is not None, None, None)
            places = to_unit(self._values(most, at, how, mine), self.bounds)
        else:
            places = self._knots_in_order(most, mine, ways, rng)
        thin = len(places) > most
        return Carried(
            places[systematic(np.ones(len(places)), most)] if thin else places,
            clock,
            width if self.plot is None else np.zeros_like(width),
            float(self.bandwidth.mean()) if self.plot is None else 0.0,
            process.forgets if spline is None else spline,
            0.0 if self.plot is not None or spline else momentary(process),
            not (thin or spline is None or momentary(process) or mine is not None),
            None if lives is None else np.stack(lives, axis=1),
            mine is not None,
        )

    def _knots_in_order(
        self, n: int, knots: Floats | None, ways: Floats, rng: np.random.Generator
    ) -> Floats:
        """(N, K, d) of the curves that carry n people, what is missing filled in, and numbers that
        have a direction, ways (dm,), in order.  knots: (n, K, d), if people have some."""
        found = self._carried_by(n, None, knots, rng)[0].knots
        parts, clock = self._parts, unit_time(self.knots, self.knots)
        places = (found if parts.plain else filled(found, clock, parts)).astype(np.float64)
        places[..., parts.moving] = in_order(places[..., parts.moving], ways)
        return places

    def with_reference(self, reference: Reference | str) -> TrajectoryModel:
        """The same model, whose people move by another reference process, or by the words for it
        ("auto", "inertia memory=2"). It costs no privacy, as often as you like.

        A signature is left behind, as it was for another model.
        """
        process = declared(reference) or by_itself()
        process.within(self._number_scale)  # refuses what does not fit
        return replace(self, reference=process).sealed()

    def with_constraints(self, *, monotone: Any = None, precision: Any = None) -> TrajectoryModel:
        """The same model with what is public about its features: `monotone`, features that never
        fall, or {feature: "rising" or "falling"}; `precision`, {feature: step}, 1 for integers."""
        constraints = Constraints.declared(monotone, precision)
        constraints.check(self.columns)
        return replace(self, constraints=constraints).sealed()

    def with_growth(self, growth: Any) -> TrajectoryModel:
        """The same model with a population that changes; it costs no privacy.

        growth: a `Growth`, or in short "released", by the released numbers of people; a rate per
            unit of time; a table {time: size}; a function g(x, t), the rate by place; None for
            everybody there all the time.
        """
        grown = replace(self, growth=Growth.declared(growth))
        if grown.growth is not None:
            grown.growth.check(self.datetime)
            grown.growth.sizes(self._scale.start, self._scale.length, self.diagnostics)
        return grown.sealed()

    def _population(self, coupling: CouplingName | None) -> Population:
        """Those who are drawn, where they come and go."""
        by_place = self.growth is not None and self.growth.by_place is not None
        if by_place and (coupling is not None or self._reference.forgets):
            raise InputError(
                "growth by place decides who becomes whom: leave out ",
                Arg("coupling"),
                ", and the memory of the reference process",
            )
        return self._changing

    @cached_property
    def _changing(self) -> Population:
        assert self.growth is not None
        return Population.of(
            self.growth,
            self._scale,
            self.diagnostics,
            (self.particles, self.weights, unit_time(self.knots, self.knots)),
            self._fitted if self._parts.plain else OnNumbers(self._fitted, self._parts.moving),
        )

    @property
    def _scale(self) -> Scale:
        first, last = self.knots[[0, -1]]
        return Scale(self.bounds, float(first), float(last - first))

    @property
    def _number_scale(self) -> Scale:
        """Of the numbers that move, which is all that a reference process is about."""
        return self._scale._replace(bounds=self.bounds[self._parts.moving])

    @cached_property
    def _reference(self) -> Reference:
        """In the unit cube."""
        if not self._parts.moving.any():
            return _Unset()
        return self.reference.within(self._number_scale)

    @cached_property
    def _fitted(self) -> Reference:
        """Fitted to the particles, where it learns."""
        numbers = self._parts.numbers(self.particles, self.weights)
        clouds = even_clouds(numbers, self.weights, FITTED)
        return self._reference.fitted(clouds, unit_time(self.knots, self.knots))

    @property
    def _suited(self) -> Reference:
        """By which people move between their knots."""
        varies = self._reference.variance(np.ones(1)).any()
        return self._fitted if self._reference.couples or varies else self._reference

    @cached_property
    def _curves(self) -> Curves:
        """Along which people move where the reference means least action."""
        if self.curves and not self._reference.couples:
            return self._through(self.particles.swapaxes(0, 1))
        clock = unit_time(self.knots, self.knots)
        return self._through(least_action_of(*self._steady, clock, self._parts, self._fitted))

    def couplings(self, coupling: CouplingName = "entropic") -> Couplings:
        """How the particles of neighbouring times belong together: what chains are drawn from.

        Under the reference process where that has a variance, else under Brownian motion.
        """
        _check_coupling(coupling)
        if self.plot is not None and "inside" not in self._coupled:
            particles, weights, _ = self._steady
            numbers = self.plot.snapped(self._parts.numbers(particles, weights))
            made = couplings_inside(self.plot, numbers, weights, self._discrete)
            self._coupled["inside"] = made
        if self.plot is not None:
            return self._coupled["inside"]
        if coupling not in self._coupled:
            gaps = np.diff(unit_time(self.knots, self.knots))
            random = self._reference.variance(np.ones(1)).any()
            process = self._fitted if random else Brownian(self.diffusivity)
            particles, weights, _ = self._steady
            numbers = self._parts.numbers(particles, weights)
            made = couple(numbers, weights, gaps, process, coupling, self._discrete)
            self._coupled[coupling] = made
        return self._coupled[coupling]

    def transitions(self, column: str) -> Transitions:
        """How people go from level to level of a category between the knots: the masses, and the
        rates of the jump process. As they are drawn by default; of curves, of everybody's.
        """
        k, labels = self._category(column)
        levels, count = self._parts.levels(self._steady[0])[..., k], self.axes.levels[k]
        if self._reference.variance(np.ones(1)).any() or self.plot is not None:
            chain = self.couplings("entropic")
            pairs = zip(chain.weights, chain.matrices, levels[:-1], levels[1:], strict=False)
            mass = []
            for weights, matrix, before, after in pairs:
                a, b = (np.eye(count)[side] for side in (before, after))
                mass.append((a * weights[:, None]).T @ matrix @ b)
            moved = np.stack(mass)
        else:
            moved = moved_mass(self._parts.levels(self._curves.knots)[..., k], count)
        times = as_user_times(self.knots, self.datetime)
        return Transitions(labels, times, moved)

    def _category(self, name: str) -> tuple[int, tuple[Label | None, ...]]:
        """The axis of a category, and what its levels mean."""
        known = {one.name: one.labels for one in self._shown if isinstance(one, Category)}
        if name not in known:
            among = f"they are {listed([*known])}" if known else "there are none"
            raise InputError(f"'{name}' is not among the columns that are categories: {among}")
        return self.features.index(name), known[name]

    @property
    def _discrete(self) -> Discrete | None:
        """What particles have beside numbers, if anything."""
        particles, _, groups = self._steady
        return None if self._parts.plain else Discrete(self._parts.codes(particles), groups)

    @cached_property
    def _coupled(self) -> dict[str, Couplings]:
        return {}

    @property
    def sha256(self) -> str:
        """Of everything in the model, its certificate too, but for the places of this hash and of
        a signature there."""
        certificate = replace(self.certificate, model_sha256=None, signature=None)
        return model_file.digest(self._fields(), self._arrays(), certificate.to_dict())

    def sealed(self) -> TrajectoryModel:
        """The model with its own hash on its certificate, and no signature."""
        seal = replace(self.certificate, model_sha256=self.sha256, signature=None)
        return replace(self, certificate=seal)

    def signed(self, key: str | Path) -> TrajectoryModel:
        """The model with a certificate that the private key in a file has signed; `verify` passes.

        Signing needs `pip install 'privtraj[sign]'`; `privtraj.new_key` makes a key.
        """
        self.verify()
        return replace(self, certificate=signatures.signed(self.certificate, key))

    def verify(self, key: str | Path | None = None) -> float:
        """The epsilon computed again; an `InputError` if the certificate is not this model's, does
        not follow from what was paid for, or contradicts the model.

        key: file of the public key of whoever is said to have signed it; theirs must be the
            signature then.
        """
        if self.certificate.model_sha256 != self.sha256:
            raise InputError("the certificate belongs to another model")
        if key is not None:
            signatures.check_signature(self.certificate, key)
        epsilon = self.certificate.verify()
        fault = model_checks.contradiction(self.certificate, self._fields(), self._arrays())
        if fault is not None:
            raise InputError(f"the model contradicts its certificate: {fault}")
        return epsilon

    def save(self, path: str | Path, *, force: bool = False, not_private: bool = False) -> None:
        """Write a zip of plain arrays and JSON, whole or not at all.

        not_private: needed for a model that is not, such as one fitted with a seed, as a file may
            get anywhere.
        """
        if not (self.certificate.private or not_private):
            raise InputError(
                f"this model is not private, as {self.certificate.caveat}: fit without seed to "
                "release one, or say ",
                Arg("not_private", True),
                " to write it all the same",
            )
        if not self.reference.can_be_written:
            raise InputError(
                "a velocity that is a function cannot be written to a file: give it as a matrix "
                "and an offset, or save the model with another reference process"
            )
        if self.growth is not None and not self.growth.can_be_written:
            raise InputError(
                "growth that is a function cannot be written to a file: give it as 'released', a "
                "rate or a table, or save the model without it"
            )
        named = self if self.certificate.model_sha256 else self.sealed()
        certificate = named.certificate.to_dict()
        model_file.write(path, self._fields(), self._arrays(), certificate, force=force)

    def quality(self, progress: Callable[[int, int], None] | None = None) -> Any:
        """What this model is worth in people per time, and how sure its medians, shares and
        correlations are, by fits that are made again of people drawn from it: nothing is spent.
        It takes several times as long as the fit, once. A `quality.estimate.Quality`, or None for a
        model that no fit has made."""
        return load_by_name("assess.quality.kept:quality_of")(self, progress)

    def report(self, path: str | Path, *, force: bool = False) -> None:
        """Write one .html page to look at, whole or not at all; it may go where the model may."""
        display.write_page(self, path, force=force)

    def __repr__(self) -> str:
        t, (_, m, d) = len(self.numeric_times), self.particles.shape
        promise = f"epsilon {up(self.certificate.epsilon)}, delta {self.certificate.delta:g}"
        if not self.certificate.private:
            promise = f"NOT PRIVATE: {self.certificate.caveat}"
        return f"TrajectoryModel({t} times, {m} particles, {d} features; {promise})"

    def _repr_html_(self) -> str:
        return display.card(self)

    def _fields(self) -> dict[str, Any]:
        """What a file holds beside arrays and certificate."""
        plain = not self.curves and self.constraints == NONE and self.growth is None
        motion = {
            "curves": self.curves,
            "reference": self.reference.to_dict(),
            "constraints": self.constraints.to_dict(),
            "growth": None if self.growth is None else self.growth.to_dict(),
        }
        usual = plain and self.reference == Brownian(self.diffusivity)
        place = {} if self.domain is None else {"domain": self.domain.to_dict()}
        numbers = plain_numbers(self.features, self.bounds)
        kinds = (
            {} if self.columns == numbers else {"columns": [to_dict(one) for one in self.columns]}
        )
        written = self.recipe is not None and self.recipe.can_be_written
        return {
            **place,
            **kinds,
            **({"recipe": self.recipe.to_dict()} if self.recipe and written else {}),
            **({} if usual else {model_checks.MOTION: motion}),
            "diffusivity": self.diffusivity,
            "cloud_size": self.cloud_size,
            "features": list(self.features),
            "time_name": self.time_name,
            "datetime": self.datetime,
            "settings": self.settings,
            "diagnostics": self.diagnostics,
        }

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "particles": self.particles.astype(np.float32),
            "weights": self.weights,
            "bandwidth": self.bandwidth,
            "times": self.numeric_times,
            "knots": self.knots,
            "bounds": self.bounds,
        }

    def _query_times(self, times: Any) -> Floats:
        if times is None:
            return self.numeric_times
        pairs = [moment(value, Arg("times")) for value in np.atleast_1d(np.asarray(times)).ravel()]
        if not pairs:
            raise InputError(Arg("times"), " is empty: give at least one time")
        if any(datetime != self.datetime for _, datetime in pairs):
            kind = "dates" if self.datetime else "numbers"
            raise InputError(Arg("times"), f" must be {kind}, as the model's times are")
        at = np.array([value for value, _ in pairs])
        if at.min() < self.knots[0] or at.max() > self.knots[-1]:
            first, last = written_times(self.knots[[0, -1]], self.datetime)
            raise InputError(
                Arg("times"), f" must lie between {first} and {last}, the model's range"
            )
        return at


def diffusivity_or(given: float | None, resolution: Floats, gaps: Floats) -> float:
    """As given by hand; else people move as far over a mean gap as particles resolve, (T,)."""
    return float(np.mean(resolution**2) / np.mean(gaps)) if given is None else given


def assemble(
    snapshots: Snapshots,
    particles: Floats,
    weights: Floats,
    *,
    times: Floats | None = None,
    knots: Floats | None = None,
    **rest: Any,
) -> TrajectoryModel:
    """The sealed model of particles (K, m, d) at these snapshots' times, or at others (K,).

    knots: (K,) of particles that are curves.
    Particles are put in order along their main axis, by which paths are stratified, and rounded as
    a file rounds them, so that a model that is read again draws the same people.
    """
    particles = particles.astype(np.float32).astype(np.float64)
    clouds = particles if knots is None else np.concatenate(particles, axis=1)[None]
    order = along_main_axis(clouds)
    return TrajectoryModel(
        particles=np.take_along_axis(particles, order[..., None], axis=1),
        weights=np.take_along_axis(weights, order, axis=1),
        numeric_times=snapshots.times if times is None else times,
        bounds=snapshots.bounds,
        features=snapshots.features,
        time_name=snapshots.time_name,
        datetime=snapshots.datetime,
        knots=np.empty(0) if knots is None else knots,
        curves=knots is not None,
        domain=snapshots.domain,
        columns=snapshots.columns,
        **rest,
    ).sealed()


def load(path: str | Path) -> TrajectoryModel:
    """Read a model file, whoever made it; unknown versions and damaged files are refused."""
    header, arrays = model_file.read(
        path, model_checks.FIELDS, model_checks.OPTIONAL, model_checks.LAYOUT
    )
    fault = model_checks.check(header, arrays)
    if fault is not None:
        raise model_file.damaged(path, fault)
    try:
        certificate = Certificate.from_dict(header["certificate"])
    except InputError as error:
        raise InputError(f"do not trust '{path}': ", *error.args) from None
    model = TrajectoryModel(
        particles=arrays["particles"].astype(np.float64),
        weights=arrays["weights"],
        bandwidth=arrays["bandwidth"],
        diffusivity=header["diffusivity"],
        numeric_times=arrays["times"],
        knots=arrays["knots"],
        bounds=arrays["bounds"],
        features=tuple(header["features"]),
        time_name=header["time_name"],
        datetime=header["datetime"],
        certificate=certificate,
        cloud_size=header["cloud_size"],
        settings=header["settings"],
        diagnostics=header["diagnostics"],
        domain=Domain.from_dict(header["domain"]) if "domain" in header else None,
        columns=model_checks.columns_of(header, arrays["bounds"]),
        recipe=model_checks.recipe_of(header),
        **model_checks.motion_of(header),
    )
    if certificate.model_sha256 != model.sha256:
        raise InputError(
            f"'{path}' was changed, as its certificate belongs to another model: do not trust it"
        )
    return model


def _without_nan(value: Any) -> Any:
    """None for what is not finite: no diagnostic may keep a paid-for model from disk."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _too_few() -> InputError:
    return InputError(
        "too few people of the model are as ",
        Arg("where"),
        " and ",
        Arg("at_start"),
        f" ask, fewer than {FEWEST_PARTICLES} particles or one person in {1 / LEAST_SHARE:g}: ask "
        "for less",
    )


def _check_request(n: Any, interpolation: str | None, coupling: str | None) -> None:
    if not (is_whole(n) and 1 <= n <= MOST_PATHS):
        raise InputError(f"the number of paths must be a whole number from 1 to {MOST_PATHS}")
    if interpolation is not None and interpolation not in get_args(Interpolation):
        raise InputError(
            f"interpolation must be 'bridge', 'linear' or 'spline', not '{interpolation}'"
        )
    if coupling is not None:
        _check_coupling(coupling)


def _check_coupling(coupling: str) -> None:
    if coupling not in get_args(CouplingName):
        raise InputError(f"coupling must be 'entropic' or 'exact', not '{coupling}'")
