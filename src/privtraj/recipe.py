"""Recipe: every choice that a user makes about a fit, in one frozen object.

`TrajectorySynthesizer` is a recipe that can be fitted, a model carries the recipe that it was made
by, and whoever fits once more (quality, planning, the audit) does so by `again`, so that no setting
is lost on the way. Nothing here is private: a recipe is written down before any record is read.

A choice is declared once for Python, the command line and files: an `Option` says what it means, a
`Kind` what it may be. All else that the command line asks for is declared so too. Standard library
only, because `privtraj --help` reads it.
"""

from __future__ import annotations

import inspect
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Self

from privtraj.base.errors import Arg, InputError, either, is_number, is_whole, short

if TYPE_CHECKING:  # heavy, and not needed by the command line before a recipe is used
    from privtraj.motion.process import Reference
    from privtraj.privacy.events import Adjacency

PublicCounts = Sequence[float] | None
"""Records in each time bin, in order, if these numbers are public knowledge."""

LATER = ("ageing", "constant", "zone")
"""Settings that a file has only where they are chosen: earlier files are as they were, to a bit."""
SMALLEST_EPSILON = 5e-3
LARGEST_EPSILON = 100.0  # beyond it nobody is protected, and the noise would be none
SMALLEST_DELTA = 1e-20  # below it, only a pure guarantee: the error of the noise has to fit
MOST_PARTICLES = 4096  # by hand: the coupling of one edge, m x m, is made at a time
SMALLEST_BANDWIDTH, LARGEST_BANDWIDTH = 0.004, 0.5  # in shares of the box; set by hand, 2026-11

# What a value may be --------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """What values a choice takes.

    must: in words.  words: that a value may be.  numbers: which numbers it may be, from low to
    high.  Where there are neither, `plain` decides.
    plain: makes a value of what a file has, or raises a ValueError.
    shape: what the command line has of it, as argparse takes it.  typed: makes what a file would
    have of the words that are typed.
    """

    must: str
    words: tuple[str, ...] = ()
    numbers: Callable[[Any], bool] | None = None
    low: float = -math.inf
    high: float = math.inf
    plain: Callable[[Any], Any] = lambda value: value
    shape: Mapping[str, Any] = field(default_factory=dict, hash=False)
    typed: Callable[[Any], Any] = lambda value: value

    def fits(self, value: Any) -> bool:
        """Whether a value is one."""
        if isinstance(value, str) or self.numbers is None:
            return value in self.words if self.words or self.numbers else True
        return self.numbers(value) and self.low <= value <= self.high

    def read(self, value: Any) -> Any:
        """A value of a file made plain; a ValueError if it is none of this kind."""
        value = self.plain(value)
        need(self.fits(value))
        return value


def need(condition: object) -> None:
    """A ValueError: the kind says what a value must be."""
    if not condition:
        raise ValueError


def whole(least: int, most: float = 10**9, *words: str) -> Kind:
    """Whole numbers in a range, or one of these words."""
    limits = f"of at least {least}" if most == math.inf else f"from {least} to {most}"
    must = either([*(f"'{word}'" for word in words), f"a whole number {limits}"])

    def typed(text: str) -> str | int:
        return text if text in words else int(text)

    return Kind(must, words, is_whole, least, most, shape={"metavar": "N"}, typed=typed)


def number(low: float = -math.inf, high: float = math.inf) -> Kind:
    """Numbers in a range."""
    must = "a number" if high == math.inf else f"between {low:g} and {high:g}"
    return Kind(must, (), is_number, low, high, finite, {"metavar": "X"})


def one_of(*words: str) -> Kind:
    """One of these words."""
    must, shape = either([f"'{word}'" for word in words]), {"metavar": f"{{{','.join(words)}}}"}
    return Kind(must, words, shape=shape)


def finite(value: Any) -> float:
    """A number, or text that reads as one."""
    need(isinstance(value, int | float | str) and not isinstance(value, bool))
    try:
        made = float(value)
    except OverflowError:
        raise ValueError from None
    need(math.isfinite(made))
    return made


def text(value: Any) -> str:
    """Text that is not empty."""
    need(isinstance(value, str) and value)
    return str(value)


def several(*parts: Kind, least: int = 1, most: float = math.inf) -> Callable[[Any], list[Any]]:
    """Reads a list of values of one kind, or of rows that have a value of each kind."""

    def read(value: Any) -> list[Any]:
        need(isinstance(value, list) and least <= len(value) <= most)
        if len(parts) == 1:
            return [parts[0].read(each) for each in value]
        need(all(isinstance(row, list) for row in value))
        return [[kind.read(x) for kind, x in zip(parts, row, strict=True)] for row in value]

    return read


def _number_or_text(value: Any) -> float | str:
    try:
        return finite(value)
    except ValueError:
        return text(value)


# fmt: off
NUMBER = number()
TEXT = Kind("text, in quotes", plain=text)
NAMES = Kind("a list of names, in quotes", plain=several(TEXT),
             shape={"nargs": "+", "metavar": "COL"})
BOOLEAN = Kind("true or false", (), lambda value: isinstance(value, bool),
               shape={"action": "store_true"})
COUNTS = Kind("a list of numbers that are not negative, one for each time bin",
              plain=several(number(0.0), least=2), shape={"nargs": "+", "metavar": "N"})
GROWTH = Kind('"released" or a rate per unit of time, with settings such as "by_place=learned"',
              plain=_number_or_text)
STEPS = Kind('a list of columns with their step, such as [["height", 0.1]]',
             plain=several(TEXT, NUMBER),
             shape={"nargs": 2, "action": "append", "metavar": ("NAME", "STEP")})
VALUES = Kind('a list of columns with what they have, such as [["site", "A"]]',
              plain=several(TEXT, Kind("a value")),
              shape={"nargs": 2, "action": "append", "metavar": ("NAME", "VALUE")})
# fmt: on


@dataclass(frozen=True)
class Option:
    """One choice: its name, what it may be, and what it means, in a few words.

    more: sentences that a configuration adds.  python: those about Python alone.
    default: what holds where it is not given.  otherwise: that in words, where it is not known
    beforehand.  example: shown by a configuration where there is no default.
    needed: why a command cannot do without it.  unless: other choices, of which one will do as
    well.  beside: choices without which it means nothing.
    each: what the command line calls one of several that a configuration has in one place.
    placed: whether the command line knows it by its place, without a flag.
    writes: of a file that is written, how its name may end.
    """

    name: str
    kind: Kind
    about: str
    more: str = ""
    python: str = ""
    default: Any = None
    otherwise: object = None
    example: Any = None
    needed: str = ""
    unless: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    metavar: str | None = None
    short: str | None = None
    each: str | None = None
    placed: bool = False
    writes: tuple[str, ...] = ()

    @property
    def flag(self) -> str:
        return f"--{(self.each or self.name).replace('_', '-')}"

    @property
    def help(self) -> str:
        """What the command line says of it."""
        if self.needed:
            return f"{self.about} (required)"
        if self.kind is BOOLEAN or self.default is self.otherwise is None:
            return self.about
        shown = self.default if self.otherwise is None else self.otherwise
        shown = short(shown) if isinstance(shown, float) else shown
        return f"{self.about} (default: {shown})"

    @property
    def comment(self) -> str:
        """What a configuration says of it."""
        known = "" if self.otherwise is None else f" (default: {self.otherwise})"
        return f"{self.about[0].upper()}{self.about[1:]}{known}. {self.more}".rstrip()


def choice(group: str, default: Any, kind: Kind, about: str, **words: Any) -> Any:
    """A field of a recipe, in a group of choices; words: the rest of an `Option`.

    What every user must choose has no default on the command line.
    """
    words |= {"kind": kind, "about": about, "default": None if "needed" in words else default}
    return field(default=default, metadata={"group": group, "words": words})


@dataclass(frozen=True, repr=False)
class Recipe:
    """Settings of a fit. The constructor only stores them; `check` refuses what cannot be used.

    What each means stands beside it, once for Python, the command line and configurations.
    """

    # fmt: off
    epsilon: float = choice("privacy", 1.0, NUMBER,
        "privacy loss allowed: smaller is more private and blurs the result",
        needed="how much privacy loss to allow is your decision (1 is a common choice, smaller is "
        "more private)", example=1.0, more="1 is a common choice.")
    delta: float = choice("privacy", 1e-5, NUMBER,
        "chance of a larger loss: far below one over the number of people",
        needed="choose it well below one over the number of people, such as 1e-5", example=1e-5,
        more="1e-5 is a common choice.")
    _: KW_ONLY
    adjacency: Adjacency = choice("privacy", "add-remove", one_of("add-remove", "replace-one"),
        "what is hidden: whether a person is in the data (add-remove), or what the record says")
    measure: str = choice("privacy", "auto", TEXT,
        "what the budget buys: counts suit few features, gradients many; auto chooses",
        more="Gradients are private mean-field Langevin dynamics, counts a private histogram per "
        "time, tables those of two columns at a time.")
    seed: int | None = choice("privacy", None, whole(0, math.inf),
        "repeatable noise, for research: the result is NOT PRIVATE", example=3,
        more="Without one, noise is private and from the operating system.")
    public_counts: PublicCounts = choice("privacy", None, COUNTS,
        "the number of people in each bin, if these are public knowledge; only with replace-one",
        example=[310.0, 305.0, 298.0],
        more="Nothing is spent on them then. Type them from where they are published, never count "
        "them in these data: they are taken as known to everybody, so whether a person is there, "
        "and in which bin, is not protected.")
    count_share: float = choice("advanced", 0.05, number(0.01, 0.9),
        "share of epsilon that the private number of people in each bin may cost")
    particles: int | None = choice("advanced", None, whole(2, MOST_PARTICLES),
        "points that carry each time: more is finer, and noisier", example=64)
    steps: int | None = choice("advanced", None, whole(2, 10_000),
        "moves of the particles; gradients share the budget among them", example=30)
    cells: int | None = choice("advanced", None, whole(2, 2**24),
        "cells per feature of the private counts: more is finer, and noisier", example=12)
    windows: int | Literal["auto", "bins"] = choice("advanced", "auto",
        whole(2, math.inf, "auto", "bins"),
        "windows of time that are measured, with curves through them: how many, or every bin by "
        "itself (bins)", otherwise="as many as suit how people move",
        more="How they move is found by a private look. With bins, each record is at the nearest.")
    subspace: int | Literal["auto", "off"] = choice("advanced", "auto",
        whole(1, math.inf, "auto", "off"),
        "axes along which many numeric features are measured, the rest as variance: how many, or "
        "never (off)", otherwise="found from eight features on",
        more="Where gradients measure, it spends a tenth of the budget on how features vary "
        "together; if few directions hold most of the variance, people are measured along these.")
    bandwidth: float | None = choice("advanced", None,
        number(SMALLEST_BANDWIDTH, LARGEST_BANDWIDTH),
        "width of a person around a particle, as a share of the box", example=0.05)
    time_coupling: float | None = choice("advanced", None, number(0.0, 10.0),
        "how strongly neighbouring times share what they know, 0 for not at all", example=0.03,
        more="In units of the default for counts; for gradients the default is 0.1.")
    diffusivity: float | None = choice("advanced", None, number(1e-9, 100.0),
        "how much single paths wander, as Brownian motion: variance, in squared shares of the box, "
        "per range of time",
        example=0.01)
    reference: Reference | str = choice("motion", "auto", TEXT,
        "how people move in between: auto, brownian, inertia, ornstein-uhlenbeck, drift or "
        "learned, with its settings, as in 'inertia memory=2 share=0.5'", metavar="PROCESS",
        more="It costs nothing and can be changed later. By itself: smooth paths of least action "
        "along a drift that the released people show, with the memory of people who have several "
        "records; Brownian motion where a diffusivity is set.",
        python="Or a process of `pt.reference`. See `TrajectoryModel.with_reference`.")
    monotone: Any = choice("motion", None, NAMES,
        "features that never fall along a path, from general knowledge", example=["height"],
        python='Or {feature: "rising" or "falling"}.')
    ageing: Any = choice("motion", None, NAMES,
        "features that are the time plus a constant of the person, such as an age in years",
        example=["age"], more="The ages of a population that is renewed stay as they were only "
        "with monotone.")
    precision: Any = choice("motion", None, STEPS,
        "step in which a feature is written, 1 for integers, from general knowledge",
        example=[["height", 0.1]], python="{feature: step}.")
    constant: Any = choice("motion", None, VALUES,
        "value of a column that is the same for everybody: not measured, and written beside",
        example=[["site", "A"]], python="{column: value}.")
    zone: Any = choice("motion", None, VALUES,
        "time zone in which tables have the moments of a column", otherwise="that of its type",
        example=[["visit", "Europe/Berlin"]], python="{column: time zone}.")
    persistence: Literal["auto", "off"] = choice("privacy", "auto", one_of("auto", "off"),
        "whether to spend on how fast people change, where they may have several records",
        more="How fast features are forgotten takes 15 to 25 % of epsilon.")
    growth: Any = choice("motion", None, GROWTH,
        "a population that changes, so that paths begin late or end early: by the private numbers "
        "of records over time (released), or at a public rate per unit of time", metavar="HOW",
        otherwise="everybody is there all the time", example="released",
        python="Or a table {time: size}, a function or a `Growth`. See "
        "`TrajectoryModel.with_growth`.")
    # fmt: on

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.chosen().items())})"

    def chosen(self) -> dict[str, Any]:
        """Epsilon, delta, and the settings that are not as they are by default."""
        defaults = {each.name: each.default for each in fields(self)}
        chosen = {"epsilon": self.epsilon, "delta": self.delta}
        for name, default in defaults.items():
            value = getattr(self, name)
            if type(value) is not type(default) or value != default:
                chosen[name] = value
        return chosen

    def again(self, **changes: Any) -> Self:
        """The same recipe with some settings changed: how a fit is made once more."""
        return replace(self, **changes)

    def check(self) -> None:
        """Refuse settings that cannot be used; needs no data, so it can come before reading any."""
        from privtraj.columns.conditions import Constraints
        from privtraj.motion.growth import Growth
        from privtraj.motion.reference import declared
        from privtraj.privacy.events import check_adjacency, check_budget

        check_budget(self.epsilon, self.delta)
        check_adjacency(self.adjacency)
        if self.public_counts is not None:
            check_public_counts(self.public_counts, self.adjacency)
        if 0 < self.delta < SMALLEST_DELTA:
            raise InputError(Arg("delta"), f" must be 0 or at least {SMALLEST_DELTA:g}")
        for name, option in OPTIONS.items():
            value = getattr(self, name)
            if not (option.kind.fits(value) or (value is None and option.default is None)):
                raise InputError(Arg(name), f" must be {option.kind.must}")
        declared(self.reference)
        Constraints.of(self)
        if self.growth is not None:
            Growth.declared(self.growth)
        if self.epsilon < SMALLEST_EPSILON:
            least = f" must be at least {SMALLEST_EPSILON:g}: less does not buy a head count"
            raise InputError(Arg("epsilon"), least)
        if self.epsilon > LARGEST_EPSILON:
            most = f" must be at most {LARGEST_EPSILON:g}: more protects nobody"
            raise InputError(Arg("epsilon"), most)

    # In files ---------------------------------------------------------------------------------

    @property
    def can_be_written(self) -> bool:
        """Whether a file can hold it: a function cannot be."""
        from privtraj.motion.growth import Growth
        from privtraj.motion.reference import declared

        reference = declared(self.reference)
        if not (reference is None or reference.can_be_written):
            return False
        return self.growth is None or Growth.declared(self.growth).can_be_written

    def to_dict(self) -> dict[str, Any]:
        """Plain values, of JSON, that `from_dict` reads; every setting, defaults too."""
        from privtraj.base.arrays import plain_json
        from privtraj.motion.growth import Growth

        if not self.can_be_written:
            raise InputError("a recipe with a function of yours cannot be written down")
        values = dict(vars(self))
        for later in LATER:
            if values[later] is None:
                del values[later]
        if isinstance(self.growth, Mapping):
            values = {**values, "growth": Growth.declared(self.growth)}
        return plain_json(values)

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """What `to_dict` wrote; an `InputError` for anything else."""
        from privtraj.motion.growth import Growth
        from privtraj.motion.reference import from_dict

        try:
            given = dict(values)
            if isinstance(given.get("reference"), Mapping):
                given["reference"] = from_dict(given["reference"])
            if isinstance(given.get("growth"), Mapping):
                given["growth"] = Growth.from_dict(given["growth"])
            made = cls(**given)
            made.check()
        except (InputError, TypeError, ValueError, AttributeError):
            raise InputError("the recipe of a fit cannot be read") from None
        return made


OPTIONS = {each.name: Option(each.name, **each.metadata["words"]) for each in fields(Recipe)}
"""Every setting as a choice: the command line and the configuration are made of these."""
MEANINGS = [
    textwrap.fill(f"{name}: {option.comment} {option.python}", 96, subsequent_indent="    ")
    for name, option in OPTIONS.items()
]
Recipe.__doc__ = "\n".join([inspect.getdoc(Recipe) or "", "", *MEANINGS])


def options(group: str) -> tuple[Option, ...]:
    """The settings of one group: "privacy", "motion" or "advanced"."""
    return tuple(OPTIONS[each.name] for each in fields(Recipe) if each.metadata["group"] == group)


def check_public_counts(counts: Any, adjacency: Adjacency, bins: int | None = None) -> None:
    """Refuse what is no list of numbers, one for each of the bins where these are known; and any
    numbers with add-remove."""
    given = Arg("public_counts")
    if not hasattr(counts, "__len__") or isinstance(counts, str | Mapping | set):
        raise InputError(
            given, " must be the list of public numbers themselves, one for each time bin"
        )
    if not all(is_number(count) and 0 <= count < float("inf") for count in counts):
        raise InputError(given, " must be numbers of people, not negative, one for each time bin")
    check_hides_counts(adjacency)
    if bins is not None and len(counts) != bins:
        raise InputError(given, f" has {len(counts)} numbers for {bins} time bins: give one each")


def check_hides_counts(adjacency: Adjacency) -> None:
    """Refuse the relation under which public numbers of people give away what should be hidden."""
    if adjacency == "add-remove":
        raise InputError(
            Arg("public_counts"),
            " would tell whether a person is in the data, which add-remove should hide: use ",
            Arg("adjacency", "replace-one"),
            ", or leave the numbers out",
        )
