"""What can be released, as frozen records: the mechanism, its noise, and how far a person moves it.

Events say what follows for one release: the pair of laws that dominates it, its line on a
certificate, its words in a message, the spread of its noise; `accounting` says what many of them
cost together. Two neighbouring relations: "add-remove", the data with and without one person, and
"replace-one", one person's records changed.

Dominating pairs.  A release is dominated by a pair of laws (P, Q) if no test tells the two
neighbouring data sets apart better by the release than by one draw from P or Q.

    Gaussian sums.  N(mu, 1) against N(0, 1) with mu = sensitivity / noise multiplier. Unless a
    person's g records may be `together` in a time bin, each is in a bin of its own (`Snapshots`
    sees to it), and vectors of norm c stand in orthogonal blocks of the stacked sum: all of them
    have norm sqrt(g) c, not g c.

    Discrete Laplace counts.  P(x) = (1 - a) / (1 + a) a^|x| with a = e^{-e}, and Q is P shifted by
    one, Q(x) = P(x - 1). Then log P(x) / Q(x) = e (|x - 1| - |x|) is +e for x <= 0 and -e for
    x >= 1, and
        P(loss = +e) = sum_{x <= 0} P(x) = (1 - a) / (1 + a) * 1 / (1 - a) = 1 / (1 + a):
    a cell that moves by one is exactly randomised response, and so it is backwards, as x -> 1 - x
    swaps P and Q. Cells that move by g altogether are g e differentially private, which one
    response of g e dominates.

    Opaque (e, d) events.  All is revealed with probability d, else randomised response of e.

    Sampled sums.  Every record takes part with a public probability q, by a coin of its own
    (Poisson sampling). Of g records of one person in one bin, j take part with probability p_j,
    binomial:  sum_j p_j N(j / z, 1)  against  N(0, 1),  or its mirror image where one is replaced,
    dominates, as `pld` proves. Records in g different bins are g compositions of one.

    Chosen times.  A set of time bins, drawn at random once for everybody, and published. Whoever
    reads the result knows it, so it is no sampling rate of the single steps: either the person's
    bin was dropped and nothing happened, or it was chosen and all steps count in full. That is a
    mixture whose component everybody knows,
        delta = chance * delta(all steps) + (1 - chance) * delta(nothing).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, NamedTuple, Self, cast, get_args

from privtraj.base.errors import Arg, InputError, is_number, is_whole
from privtraj.privacy import noise, pld

Adjacency = Literal["add-remove", "replace-one"]


def check_adjacency(adjacency: str) -> Adjacency:
    """The neighbouring relation, or an `InputError` that names the two there are."""
    if adjacency not in get_args(Adjacency):
        raise InputError(
            Arg("adjacency"), f" must be 'add-remove' or 'replace-one', not {adjacency!r}"
        )
    return cast(Adjacency, adjacency)


def check_budget(epsilon: float, delta: float, prefix: str = "") -> None:
    """Refuse an epsilon that is not positive and finite, or a delta outside [0, 1).
    prefix: of the names that the user knows them by, "cap_" for example."""
    if not (is_number(epsilon) and math.isfinite(epsilon) and epsilon > 0):
        raise InputError(Arg(f"{prefix}epsilon"), " must be a positive, finite number")
    if not (is_number(delta) and 0 <= delta < 1):
        raise InputError(Arg(f"{prefix}delta"), " must be at least 0 and below 1")


class Person(NamedTuple):
    """What one person may contribute: at most so many records, in different bins or together."""

    records: int = 1
    together: bool = False

    @property
    def weight(self) -> int | None:
        """By how much they move counts of cells in all, where their records are counted as one."""
        return 1 if self.together else None

    def in_slabs(self) -> Person:
        """The same where bins are taken together: several records may then meet in one."""
        return Person(self.records, together=self.records > 1)


class DominatingPair(NamedTuple):
    """A product of pairs, as those of composed releases multiply; most releases have one factor."""

    mu: float = 0.0  # N(mu, 1) against N(0, 1)
    responses: tuple[float, int] | None = None  # (e, n): n signs, + with odds e^e : 1 or 1 : e^e
    revealed: float = 0.0  # all is told with this probability, nothing otherwise
    sampled: SampledPair | None = None  # without a closed form


MOST_TIMES = 10**9
_LEAST, _BELOW_ONE = math.ulp(0.0), math.nextafter(1.0, 0.0)
_RANGES: dict[str, tuple[Any, float, float]] = {
    "noise_multiplier": (Real, _LEAST, 1e300),
    "epsilon": (Real, _LEAST, 1e300),
    "delta": (Real, 0.0, _BELOW_ONE),
    "slack": (Real, 0.0, _BELOW_ONE),  # a total variation distance
    "rate": (Real, _LEAST, 1.0),
    "share": (Real, _LEAST, 1.0),
    "records": (Integral, 1, MOST_TIMES),
    "times": (Integral, 1, MOST_TIMES),
    "weight": (Integral, 1, MOST_TIMES),
}
_UNSAID = (("rate", 1.0), ("weight", None))  # what an entry does not mention
_WORDS = {
    "noise_epsilon": "epsilon",
    "rate": "sampling rate",
    "weight": "weight of a person",
    "share": "share of the times",
}


class Event(ABC):
    """One release. what: its name. slack: total variation of the noise drawn from the stated.

    records: most records of one person; together: whether they may share a time bin.
    rate: the probability with which a record takes part.

    Its entry on a certificate has its fields, by the names in `keys` where these are others.
    """

    mechanisms: ClassVar[tuple[str, ...]]  # its names on a certificate: usual, and the other one
    keys: ClassVar[Mapping[str, str]] = {}
    _kinds: ClassVar[dict[str, type[Event]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        Event._kinds.update(dict.fromkeys(cls.mechanisms, cls))

    what: str
    slack: float
    records: int = 1
    together: bool = False
    rate: float = 1.0
    weight: int | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name not in _RANGES or (name == "weight" and value is None):
                continue
            kind, low, high = _RANGES[name]
            if isinstance(value, bool) or not (isinstance(value, kind) and low <= value <= high):
                raise InputError(f"the {name.replace('_', ' ')} of a release is out of range")
        if not isinstance(self.together, bool):
            raise InputError("records of a person are together, True, or not, False")

    @property
    def mechanism(self) -> str:
        """Its name on a certificate."""
        return self.mechanisms[self.rate != 1 or self.weight is not None]

    @property
    def person(self) -> Person:
        """What a person may contribute to it, where that is known."""
        return Person(self.records, self.together)

    @abstractmethod
    def pair(self, adjacency: Adjacency) -> DominatingPair:
        """The pair of laws that dominates it, slack left aside."""

    def cost(self, adjacency: Adjacency, times: int) -> dict[str, float]:
        """What so many of them cost, where one number says it."""
        return {}

    @property
    def kind(self) -> tuple[Any, ...]:
        """All that is known of it before its noise is."""
        return self.mechanism, self.name, self.records, self.together, self.rate

    @property
    def name(self) -> str:
        """What is planned of `what`: after ": " stands which columns it turned out to be about."""
        return self.what.partition(": ")[0]

    @property
    def information(self) -> float:
        """How much it tells: adds up over the releases that share one event's cost."""
        raise NotImplementedError

    def ideal(self) -> Self:
        """The event with noise drawn exactly as stated."""
        return replace(self, slack=0.0)  # type: ignore[type-var]

    def fields(self) -> dict[str, Any]:
        """The values from which `of_entry` makes it again, beside its name."""
        values = {}
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            if each.name not in ("what", "slack") and (each.name, value) not in _UNSAID:
                values[self.keys.get(each.name, each.name)] = value
        return values

    @classmethod
    def of_entry(cls, entry: Mapping[str, Any]) -> Self:
        """The event of an entry of its own mechanism."""
        names = {each.name for each in fields(cls)} - {"slack"}  # type: ignore[arg-type]
        keys = {name: cls.keys.get(name, name) for name in names}
        return cls(**{name: entry[key] for name, key in keys.items() if key in entry})

    def to_dict(self, adjacency: Adjacency, times: int = 1) -> dict[str, Any]:
        """The entry of a certificate for `times` such releases; its cost is that of all of them."""
        line = {"what": self.what, "times": times, "mechanism": self.mechanism}
        return {**line, **self.fields(), **self.cost(adjacency, times)}

    @staticmethod
    def from_dict(entry: Any) -> Event:
        """The inverse of `to_dict`, but for the slack, which a certificate has as one sum.

        The entry may be anybody's: an `InputError` unless all of it is of its kind and size.
        """
        try:
            event = Event._kinds[entry["mechanism"]].of_entry(entry)
            often = is_whole(entry["times"]) and 1 <= entry["times"] <= MOST_TIMES
            if often and event.mechanism == entry["mechanism"] and is_line(event.what):
                return event
        except (LookupError, TypeError, AttributeError, ArithmeticError, InputError):
            pass
        raise InputError("an entry of a certificate is not that of an event")

    @property
    def in_words(self) -> str:
        """The mechanism and its noise."""
        numbers = [
            f"{_WORDS.get(key, key.replace('_', ' '))} {value:.4g}"
            for key, value in self.fields().items()
            if key not in ("records", "together", "adjacency")
        ]
        return f"{self.mechanism} noise, {', '.join(numbers)}"

    def describe(self, times: int = 1) -> str:
        """Its name and noise, for messages."""
        many = f"{times} x " if times > 1 else ""
        return f"{many}{self.what!r} ({self.in_words})"


def is_line(value: Any) -> bool:
    """Text without control characters, which could hide what stands beside it."""
    return isinstance(value, str) and not any(
        ord(letter) < 32 or 127 <= ord(letter) < 160 or letter in "\u2028\u2029" for letter in value
    )


@dataclass(frozen=True)
class GaussianSum(Event):
    """A sum of per-record vectors of L2 norm at most c, released with N(0, (c z)^2 I) added.

    rate: every record takes part with this probability; the sum is not divided by anything that
    depends on the coins.
    """

    mechanisms: ClassVar[tuple[str, ...]] = ("Gaussian", "sampled Gaussian")

    noise_multiplier: float  # z
    what: str
    slack: float = 0.0
    records: int = 1
    together: bool = False
    rate: float = 1.0

    def sensitivity(self, adjacency: Adjacency) -> float:
        """Largest move of the sum, in units of c, if all records take part."""
        size = self.records if self.together else math.sqrt(self.records)
        return people_moved(adjacency) * size

    def pair(self, adjacency: Adjacency) -> DominatingPair:
        if self.rate != 1:
            return DominatingPair(sampled=SampledPair.of(self, adjacency))
        return DominatingPair(mu=self.sensitivity(adjacency) / self.noise_multiplier)

    @property
    def information(self) -> float:
        """z^-2."""
        return self.noise_multiplier**-2

    @property
    def noise_variance(self) -> float:
        """Of one released number, in units of c^2: z^2."""
        return self.noise_multiplier**2

    def cost(self, adjacency: Adjacency, times: int) -> dict[str, float]:
        """mu of all of them, sensitivity sqrt(times) / z; where people are sampled, no number."""
        if self.rate != 1:
            return {}
        return {"mu": self.sensitivity(adjacency) * math.sqrt(times) / self.noise_multiplier}


@dataclass(frozen=True)
class LaplaceCounts(Event):
    """Counts of records over cells, each record in exactly one, with discrete Laplace noise added.

    Records of a person in different time bins are in different cells: each one added or removed
    shifts one cell by one, each one replaced shifts two. Records that may be together may be in one
    cell.

    weight: the most that a person moves all counts by together, where that is no matter of how many
    records they have (`CellCounts` of records that may be together, `LagTable`). Whoever comes or
    goes is then one response of weight * epsilon.
    """

    mechanisms: ClassVar[tuple[str, ...]] = ("discrete Laplace", "per-person discrete Laplace")
    keys: ClassVar[Mapping[str, str]] = {"epsilon": "noise_epsilon"}

    epsilon: float
    what: str
    slack: float = 0.0
    records: int = 1
    together: bool = False
    weight: int | None = None

    def sensitivity(self, adjacency: Adjacency) -> int:
        """Largest sum of the moves of all cells: the L1 sensitivity."""
        return people_moved(adjacency) * (self.weight or self.records)

    def pair(self, adjacency: Adjacency) -> DominatingPair:
        """A response of epsilon per cell that moves; where g records may be in one cell, of
        g epsilon per person."""
        in_a_cell = self.weight or (self.records if self.together else 1)
        cells = self.sensitivity(adjacency) // in_a_cell
        return DominatingPair(responses=(in_a_cell * self.epsilon, cells))

    @property
    def information(self) -> float:
        """epsilon."""
        return self.epsilon

    @property
    def noise_variance(self) -> float:
        """Of one count: 2 e^-epsilon / (1 - e^-epsilon)^2."""
        return noise.laplace_variance(self.epsilon)

    def cost(self, adjacency: Adjacency, times: int) -> dict[str, float]:
        """epsilon of all of them: sensitivity times epsilon."""
        return {"epsilon": self.sensitivity(adjacency) * times * self.epsilon}


@dataclass(frozen=True)
class Opaque(Event):
    """A release of which only its (epsilon, delta) under one adjacency is known."""

    mechanisms: ClassVar[tuple[str, ...]] = ("opaque",)

    epsilon: float
    delta: float
    what: str
    adjacency: Adjacency = "add-remove"
    slack: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_adjacency(self.adjacency)

    def under(self, adjacency: Adjacency) -> tuple[float, float]:
        """(epsilon, delta) under the adjacency asked for.

        To replace is to remove and to add: (2 epsilon, (1 + e^epsilon) delta). A guarantee for
        replacing says nothing about adding or removing: delta is 1 then.
        """
        if adjacency == self.adjacency:
            return self.epsilon, self.delta
        if adjacency == "add-remove":
            return self.epsilon, 1.0
        factor = 1 + math.exp(self.epsilon) if self.epsilon < 700 else math.inf
        return 2 * self.epsilon, min(1.0, factor * self.delta if self.delta else 0.0)

    def pair(self, adjacency: Adjacency) -> DominatingPair:
        epsilon, delta = self.under(adjacency)
        return DominatingPair(responses=(epsilon, 1), revealed=delta)


@dataclass(frozen=True)
class ChosenTimes(Event):
    """`times` releases of one kind, on the people of a random, published set of time bins only."""

    mechanisms: ClassVar[tuple[str, ...]] = ("Gaussian on chosen times",)

    share: float  # the probability that a given bin is chosen
    release: GaussianSum
    times: int
    what: str

    @property
    def slack(self) -> float:  # type: ignore[override]
        """Of all its releases."""
        return self.times * self.release.slack

    @property
    def person(self) -> Person:
        return self.release.person

    def chance(self, adjacency: Adjacency) -> float:
        """At most this is the probability that any bin of the person's records was chosen: a union
        bound over the bins of all records, old and new where one is replaced."""
        return min(1.0, self.share * people_moved(adjacency) * self.release.records)

    def pair(self, adjacency: Adjacency) -> DominatingPair:
        chance, step = self.chance(adjacency), SampledPair.of(self.release, adjacency)
        return DominatingPair(sampled=replace(step, chance=chance, steps=self.times))

    def ideal(self) -> Self:
        return replace(self, release=self.release.ideal())

    def fields(self) -> dict[str, Any]:
        return {"share": self.share, "steps": self.times, **self.release.fields()}

    @classmethod
    def of_entry(cls, entry: Mapping[str, Any]) -> Self:
        return cls(entry["share"], GaussianSum.of_entry(entry), entry["steps"], entry["what"])


def people_moved(adjacency: Adjacency) -> int:
    """1 if a person comes or goes, 2 if one goes and another comes."""
    return 1 if check_adjacency(adjacency) == "add-remove" else 2


MOST_TOGETHER = 1000  # records of a person in one bin, of which a binomial is taken
MOST_LOSS = 1e4  # of one sampled sum: far beyond what protects anybody


@dataclass(frozen=True)
class SampledPair:
    """In every bin, sum_j p_j N(j / z, 1) against N(0, 1), or against its mirror image.

    chance: with which all the steps are made, else none, of chosen times; None in any case.
    """

    noise_multiplier: float
    rate: float
    records: int
    together: bool
    adjacency: Adjacency
    chance: float | None = None
    steps: int = 1

    @classmethod
    def of(cls, event: GaussianSum, adjacency: Adjacency) -> SampledPair:
        """The pair of a sum, over everybody too."""
        return cls(event.noise_multiplier, event.rate, *event.person, adjacency)

    def moves(self) -> tuple[list[float], list[float]]:
        """Sizes j, in units of c, of the move that j sampled records of one bin make; chances."""
        g, q = (self.records if self.together else 1), self.rate
        chances = [math.comb(g, j) * q**j * (1 - q) ** (g - j) for j in range(g + 1)]
        return [float(j) for j in range(g + 1)], chances

    def distribution(self, interval: float) -> pld.Losses:
        """The losses of a pair that dominates this one, at multiples of the interval."""
        mirrored = self.adjacency == "replace-one"
        one_bin = pld.of_mixture(*self.moves(), self.noise_multiplier, mirrored, interval)
        steps = one_bin.repeated(1 if self.together else self.records).repeated(self.steps)
        return steps.with_chance(1.0 if self.chance is None else self.chance, interval)

    def points(self, times: int, interval: float) -> float:
        """About how many losses on the grid `times` of it take, which is what composing them costs:
        those of one, within ten deviations, and of all together: 20 times their deviation, or what
        all at once could reach. The variance of one is about E_Q[(P / Q)^2] - 1, which is
        E[e^{j j' / z^2}] - 1 for two numbers of sampled records.
        """
        together = self.records if self.together else 1
        size, n = together / self.noise_multiplier, times * self.steps * (self.records // together)
        sides = 2 if self.adjacency == "replace-one" else 1
        one = sides * (size * size / 2 + 10 * size)
        if together > MOST_TOGETHER or one > MOST_LOSS:
            return math.inf
        q, inverse, (sizes, chances) = self.rate, self.noise_multiplier**-2, self.moves()
        logs = [together * math.log1p(q * math.expm1(min(j * inverse, 700.0))) for j in sizes]
        variance = sum(p * math.expm1(min(x, 700.0)) for p, x in zip(chances, logs, strict=True))
        return (one + min(n * one, 20 * sides * math.sqrt(n * variance))) / interval

    def limit_mu_squared(self, times: int) -> float | None:
        """mu^2 of the Gaussian pair that `times` of it tend to, by the central limit theorem, which
        is known for add-remove, separate records and all times."""
        if self.together or self.adjacency == "replace-one" or self.chance is not None:
            return None
        return clt_mu(self.noise_multiplier, self.rate, times * self.records) ** 2


def clt_mu(noise_multiplier: float, rate: float, steps: int) -> float:
    """mu = rate sqrt(K (e^{1 / z^2} - 1)): the limit that sampled steps tend to.

    Not a guarantee: at every setting tried, the epsilon it gives is below the true one.
    """
    return rate * math.sqrt(steps * math.expm1(noise_multiplier**-2))
