"""Recipe: every choice that a user makes about a fit, in one frozen object.

`TrajectorySynthesizer` is a recipe that can be fitted, a model carries the recipe that it was made
by, and whoever fits once more (quality, planning, the audit) does so by `again`, so that no setting
is lost on the way. Nothing here is private: a recipe is written down before any record is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from privtraj.base.errors import Arg, InputError, either, is_number, is_whole

if TYPE_CHECKING:  # heavy, and not needed by the command line before a recipe is used
    from privtraj.motion.process import Reference
    from privtraj.privacy.events import Adjacency

MeasureName = Literal["gradients", "counts", "marginals"]
PublicCounts = Sequence[float] | None
"""Records in each time bin, in order, if these numbers are public knowledge."""

SMALLEST_EPSILON = 5e-3
LARGEST_EPSILON = 100.0  # beyond it nobody is protected, and the noise would be none
SMALLEST_DELTA = 1e-20  # below it, only a pure guarantee: the error of the noise has to fit
MOST_PARTICLES = 4096  # by hand: the coupling of one edge, m x m, is made at a time
SMALLEST_BANDWIDTH, LARGEST_BANDWIDTH = 0.004, 0.5  # in shares of the box; set by hand, 2026-11

_RANGES = (
    ("count_share", 0.01, 0.9),
    ("particles", 2, MOST_PARTICLES),
    ("steps", 2, 10_000),
    ("cells", 2, 2**24),
    ("bandwidth", SMALLEST_BANDWIDTH, LARGEST_BANDWIDTH),
    ("time_coupling", 0.0, 10.0),
    ("diffusivity", 1e-9, 100.0),
)


@dataclass(frozen=True, repr=False)
class Recipe:
    """Settings of a fit. The constructor only stores them; `check` refuses what cannot be used.

    epsilon, delta: the guarantee.  adjacency: "add-remove" or "replace-one".
    measure: "gradients" (private mean-field Langevin dynamics), "counts" (a private histogram per
        time stands in for the people), "marginals" (private tables of two columns at a time, which
        particles explain), or "auto" (`choose_measure`).
    seed: None for private noise from the operating system; a number makes the run repeatable, for
        research, and the result NOT PRIVATE.
    public_counts: the number of people in each time bin, as numbers, if they are public knowledge;
        never read from the data. Only with "replace-one": then the rest of a person's records is
        protected, and in which bin they are is not.
    count_share: share of epsilon that the private number of people per bin may cost.
    particles, steps, cells, bandwidth, time_coupling, diffusivity: set by hand what is otherwise
        chosen from public and released numbers. steps are those of private gradients; bandwidth is
        in shares of the box. time_coupling says how strongly neighbouring times share what they
        know, 0 for not at all: in units of the default for counts, and 0.1 by default for
        gradients. diffusivity is variance, in squared shares of the box, per time range.
    slabs: the resolution in time. Records of one slab of time are measured together, and curves are
        fitted through the slabs. "auto" finds the number of slabs that suits how people move, from
        a private look at it; a number sets it; "bins" measures every declared time bin by itself,
        each record at the nearest.
    reference: how people move between what was measured: a process of `pt.reference`, its
        name with settings ("inertia memory=2"), or "auto": smooth paths of least action along a
        drift that the model itself shows, Inertia(drift=Learned()), whose memory is that of people
        with several records where there are such; Brownian motion where a diffusivity is set by
        hand. `TrajectoryModel.with_reference` changes it later.
    monotone: features that never fall, or {feature: "rising" or "falling"}, public knowledge.
    precision: {feature: step} in which people are written, 1 for integers.
    subspace: many numeric features that people hardly fill. "auto", from six numbers on where
        gradients measure, spends a tenth of the budget on how features vary together; if few
        directions hold most of the variance, people are measured along these, and the rest is
        released as variance. A number sets how many directions; "off" spends nothing on it.
    persistence: "auto" asks how fast features of people are forgotten, where people may have
        several records, for 15 to 25 % of epsilon; "off" spends nothing on it. Tables that have
        categories, or numbers that may be missing, are not asked.
    growth: how the number of people changes, by which paths begin late or end early: "released", by
        the private numbers of records over time, where these were sampled in proportion; a public
        rate, table {time: size} or function; or a `Growth`. None: everybody is there all the time.
        `TrajectoryModel.with_growth` changes it later.
    pull: the name of time_coupling before version 0.2.
    """

    epsilon: float = 1.0
    delta: float = 1e-5
    _: KW_ONLY
    adjacency: Adjacency = "add-remove"
    measure: Literal["auto", "gradients", "counts", "marginals"] = "auto"
    seed: int | None = None
    public_counts: PublicCounts = None
    count_share: float = 0.05
    particles: int | None = None
    steps: int | None = None
    cells: int | None = None
    slabs: int | Literal["auto", "bins"] = "auto"
    subspace: int | Literal["auto", "off"] = "auto"
    bandwidth: float | None = None
    time_coupling: float | None = None
    diffusivity: float | None = None
    reference: Reference | str = "auto"
    monotone: Any = None
    precision: Any = None
    persistence: Literal["auto", "off"] = "auto"
    growth: Any = None
    pull: InitVar[float | None] = None

    def __post_init__(self, pull: float | None) -> None:
        if pull is not None and self.time_coupling is None:
            object.__setattr__(self, "time_coupling", pull)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.chosen().items())})"

    def chosen(self) -> dict[str, Any]:
        """Epsilon, delta, and the settings that are not as they are by default."""
        defaults = {each.name: each.default for each in fields(self)}
        values = {name: getattr(self, name) for name in defaults}
        return {
            name: value
            for name, value in values.items()
            if name in ("epsilon", "delta")
            or type(value) is not type(defaults[name])
            or value != defaults[name]
        }

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
        check_public_counts(self.public_counts, self.adjacency)
        if self.delta == 0 and self.measure in ("gradients", "marginals"):
            raise InputError(
                f"{self.measure} need a delta above 0: set ",
                Arg("delta="),
                ", or use ",
                Arg("measure", "counts"),
            )
        if 0 < self.delta < SMALLEST_DELTA:
            raise InputError(Arg("delta"), f" must be 0 or at least {SMALLEST_DELTA:g}")
        if self.measure not in ("auto", *get_args(MeasureName)):
            names = either(("'auto'", *(f"'{name}'" for name in get_args(MeasureName))))
            raise InputError(Arg("measure"), f" must be {names}, not '{self.measure}'")
        wanted: Any = self.slabs
        if wanted not in ("auto", "bins") and not (is_whole(wanted) and wanted >= 2):
            raise InputError(
                Arg("slabs"), " must be 'auto', 'bins' or a whole number of at least 2"
            )
        axes: Any = self.subspace
        if axes not in ("auto", "off") and not (is_whole(axes) and axes >= 1):
            raise InputError(
                Arg("subspace"), " must be 'auto', 'off' or a whole number of at least 1"
            )
        if self.persistence not in ("auto", "off"):
            raise InputError(Arg("persistence"), " must be 'auto' or 'off'")
        for name, low, high in _RANGES:
            value = getattr(self, name)
            if value is not None or name == "count_share":
                check_setting(name, value, low, high)
        declared(self.reference)
        Constraints.declared(self.monotone, self.precision)
        Growth.declared(self.growth)
        if self.epsilon < SMALLEST_EPSILON:
            raise InputError(
                Arg("epsilon"),
                f" must be at least {SMALLEST_EPSILON:g}: less does not buy a head count",
            )
        if self.epsilon > LARGEST_EPSILON:
            raise InputError(
                Arg("epsilon"), f" must be at most {LARGEST_EPSILON:g}: more protects nobody"
            )

    # In files ---------------------------------------------------------------------------------

    @property
    def can_be_written(self) -> bool:
        """Whether a file can hold it: a function cannot be."""
        from privtraj.motion.growth import Growth
        from privtraj.motion.reference import declared

        reference, growth = declared(self.reference), Growth.declared(self.growth)
        return all(each is None or each.can_be_written for each in (reference, growth))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, of JSON, that `from_dict` reads; every setting, defaults too."""
        from privtraj.motion.growth import Growth

        if not self.can_be_written:
            raise InputError("a recipe with a function of yours cannot be written down")
        values = {each.name: getattr(self, each.name) for each in fields(Recipe)}
        if isinstance(self.growth, Mapping):
            values["growth"] = Growth.declared(self.growth)
        return {name: _plain(value) for name, value in values.items()}

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


def _plain(value: Any) -> Any:
    """A setting as JSON has it."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if hasattr(value, "tolist"):  # numbers and arrays of numpy
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return [_plain(each) for each in value]


def check_setting(name: str, value: Any, low: float, high: float) -> None:
    """Refuse what is not a number in this range, a whole one if its limits are."""
    if not (is_number(value) and low <= value <= high):
        raise InputError(Arg(name), f" must be between {low:g} and {high:g}")
    if isinstance(low, int) and not is_whole(value):
        raise InputError(Arg(name), " must be a whole number")


def check_public_counts(counts: Any, adjacency: Adjacency, bins: int | None = None) -> None:
    """Refuse what is no list of numbers, one for each of the bins where these are known; and any
    numbers with add-remove."""
    from privtraj.privacy.events import check_hides_counts

    if counts is None:
        return
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
