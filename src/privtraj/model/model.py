"""The released model: private marginals, the certificate, and unlimited sampling.

A model holds nothing that was not paid for: particles, bandwidths, diffusivity, public settings,
diagnostics of released quantities, and the certificate. Everything it can do is post-processing,
how people move included: the reference process, and what is public about features.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base import formats
from privtraj.base.arrays import Floats, along_main_axis, equal_weight
from privtraj.base.errors import Arg, InputError
from privtraj.base.formats import load as load_by_name
from privtraj.base.space import as_user_times, hat_functions
from privtraj.columns.conditions import Constraints
from privtraj.columns.kinds import Axes, decoded
from privtraj.domain.domain import Plot
from privtraj.model.paths import Paths
from privtraj.model.record import Record, contradiction, packed, read, write
from privtraj.model.sampler import How, Sampler
from privtraj.motion.couplings import CouplingName, Couplings
from privtraj.motion.curves import Carried
from privtraj.motion.growth import Growth
from privtraj.motion.process import Interpolation, Points, Reference
from privtraj.motion.reference import USUAL, declared
from privtraj.motion.states import Transitions, filled
from privtraj.privacy import signatures
from privtraj.privacy.ledger import up

if TYPE_CHECKING:
    from privtraj.data.snapshots import Snapshots


@dataclass(frozen=True, eq=False)
class TrajectoryModel(Record):
    __doc__ = Record.__doc__

    @property
    def times(self) -> NDArray[Any]:
        """(T,) times of interest in data units; datetime64 where the data had dates."""
        return as_user_times(self.numeric_times, self.datetime)

    @cached_property
    def sampler(self) -> Sampler:
        """What draws people."""
        return Sampler(self)

    @property
    def axes(self) -> Axes:
        """Which columns are numbers, and which are levels."""
        return self.sampler.parts.axes

    @property
    def plot(self) -> Plot | None:
        """The domain in the unit cube of the numbers that move, if there is one."""
        return self.sampler.region

    @property
    def marginals(self) -> Floats:
        """(T, n, d) equal-weight particles in data units: heavy particles are repeated.

        They lack the observation noise of released people; `sample` adds it. Categories are levels,
        and numbers that are missing NaN.
        """
        parts = self.sampler.parts
        if parts.plain:
            particles, weights = self._at_times(self.particles), self._at_times(self.weights)
        else:  # numbers are between those of two knots, levels those of the one or of the other
            whole: Points = self.particles
            if self.curves:
                whole = filled(whole.swapaxes(0, 1), self.knots, parts).swapaxes(0, 1)
            numbers, weights = self._at_times(whole), self._at_times(self.weights)
            basis = hat_functions(self.numeric_times, self.knots)
            used = basis > 0
            left, right = used.argmax(axis=1), used.shape[1] - 1 - used[:, ::-1].argmax(axis=1)
            sides = [np.where(self.axes.numbers, numbers, self.particles[k]) for k in (left, right)]
            share = np.where(left == right, 0.0, basis[np.arange(len(left)), right])[:, None]
            particles = np.concatenate(sides, axis=1)
            weights = np.concatenate([(1 - share) * weights, share * weights], axis=1)
        if self.plot is not None:
            moving = parts.moving
            particles[..., moving] = self.plot.snapped(particles[..., moving])
        unit = equal_weight(particles, weights, self.cloud_size)
        pairs = enumerate(self.columns)
        values = np.stack([one.from_unit(unit[..., k]) for k, one in pairs], axis=-1)
        values[..., : len(self.sampler.shown)] = decoded(self.columns, values)
        return values

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
        rng = np.random.default_rng(seed)
        how = How(rng, observation_noise, interpolation, coupling, branching)
        return self.sampler.paths(n, times, how, where, at_start)

    def carried(self, numbers: int, people: int, stops: int, seed: int = 0) -> Carried:
        """Curves from which somebody else can draw people as `sample` does, of so many numbers in
        all: at most `people` of them, through so many stops unless there are more knots.

        In a domain they are people as they are, with their offsets, as these depend on walls.
        """
        return self.sampler.carried(numbers, people, stops, seed)

    def couplings(self, coupling: CouplingName = "entropic") -> Couplings:
        """How the particles of neighbouring times belong together: what chains are drawn from.

        Under the reference process where that has a variance, else under Brownian motion.
        """
        return self.sampler.couplings(coupling)

    def transitions(self, column: str) -> Transitions:
        """How people go from level to level of a category between the knots: the masses, and the
        rates of the jump process. As they are drawn by default; of curves, of everybody's.
        """
        return self.sampler.transitions(column)

    def with_reference(self, reference: Reference | str) -> TrajectoryModel:
        """The same model, whose people move by another reference process, or by the words for it
        ("auto", "inertia memory=2"). It costs no privacy, as often as you like.

        A signature is left behind, as it was for another model.
        """
        process = declared(reference) or USUAL
        process.within(self.sampler.numbers)  # refuses what does not fit
        return replace(self, reference=process).sealed()

    def with_constraints(
        self, *, monotone: Any = None, precision: Any = None, **more: Any
    ) -> TrajectoryModel:
        """The same model with what is public about its features, as `Recipe` explains it.
        more: `ageing`, `constant` and `zone`; these two stay as they are where none are given."""
        kept = {word: getattr(self.constraints, word) for word in ("constant", "zone")}
        constraints = Constraints.declared(monotone, precision, **{**kept, **more})
        constraints.check(self.columns)
        return replace(self, constraints=constraints).sealed()

    def with_growth(self, growth: Any) -> TrajectoryModel:
        """The same model with a population that changes; it costs no privacy.

        growth: a `Growth`, or in short "released", by the released numbers of people; a rate per
            unit of time; a table {time: size}; a function g(x, t), the rate by place; None for
            everybody there all the time.
        """
        made = None if growth is None else Growth.declared(growth)
        if made is not None:
            made.check(self.datetime)
            made.sizes(self.scale.start, self.scale.length, self.diagnostics)
        return replace(self, growth=made).sealed()

    def extend(self, snapshots: Snapshots, **how: Any) -> TrajectoryModel:
        """This model and a batch of further people, at later times or at known ones: a new model.

        Nobody of the batch may have been in an earlier one; then all batches together cost a person
        what the dearest of them costs. The old model is the prior, and no old record is needed.

        past: "keep" leaves particles at published times as they are to the bit, "revise" lets new
            people improve them.
        new_people: your word that nobody in these snapshots was in an earlier batch; or people,
            what has checked that (`stream.people`), in words. Without either the batches add up.
        ledger, declared, watcher: as of `TrajectorySynthesizer.fit`.  epsilon, delta: of this
            batch, by default those of the model's recipe.  seed: for research, NOT PRIVATE.
        """
        grown: TrajectoryModel = load_by_name("stream.extend:extended")(self, snapshots, **how)
        return grown

    @property
    def sha256(self) -> str:
        """Of everything in the model, its certificate too, but for the places of this hash and of
        a signature there."""
        unsealed = replace(self.certificate, model_sha256=None, signature=None)
        header, _ = packed(self, unsealed)
        text = json.dumps(header, sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

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
        if fault := contradiction(self):
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
        write(named, path, force=force)

    def quality(self, progress: Callable[[int, int], None] | None = None) -> Any:
        """What this model is worth in people per time, by fits to people who may be the truth
        behind it: nothing is spent. It takes several times as long as the fit, once. An
        `assess.quality.Quality`, or None for a model that no fit has made."""
        return load_by_name("assess.quality:quality_of")(self, progress)

    def ask(self, question: str, progress: Callable[[int, int], None] | None = None) -> Any:
        """The answer to a question in words, such as "mean hba1c by diagnosis, year", with its 90 %
        interval; a group that noise has hidden says so. It costs no privacy. An `assess.ask.Answer`
        with `rows`, `to_pandas()`, `to_dict()`."""
        return load_by_name("assess.ask:ask")(self, question, progress)

    def report(self, path: str | Path, *, force: bool = False) -> None:
        """Write one .html page to look at, whole or not at all; it may go where the model may."""
        formats.write_page(self, path, force=force)

    def __repr__(self) -> str:
        t, (_, m, d) = len(self.numeric_times), self.particles.shape
        promise = f"epsilon {up(self.certificate.epsilon)}, delta {self.certificate.delta:g}"
        if not self.certificate.private:
            promise = f"NOT PRIVATE: {self.certificate.caveat}"
        return f"TrajectoryModel({t} times, {m} particles, {d} features; {promise})"


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
        numeric_times=snapshots.axis.times if times is None else times,
        bounds=snapshots.bounds,
        features=snapshots.features,
        time_name=snapshots.time_name,
        datetime=snapshots.axis.datetime,
        knots=np.empty(0) if knots is None else knots,
        curves=knots is not None,
        domain=snapshots.domain,
        columns=snapshots.columns,
        **rest,
    ).sealed()


def load(path: str | Path) -> TrajectoryModel:
    """Read a model file, whoever made it; unknown versions and damaged files are refused."""
    model = TrajectoryModel(**read(path))
    if model.certificate.model_sha256 != model.sha256:
        raise InputError(
            f"'{path}' was changed, as its certificate belongs to another model: do not trust it"
        )
    return model
