"""The forecast: what is asked before a fit, and what to expect of it, as numbers and in words.

All of it is public. Where columns are numbers, worth is simulated (`plan`); of categories only the
measure and its noise can be said, as how well they come out depends on how they hang together.
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from privtraj.assess.common import Estimate
from privtraj.base.arrays import Floats
from privtraj.base.errors import about, aligned, short
from privtraj.metrics.people import MOST_TOLD
from privtraj.privacy.certificate import LARGE_EPSILON, chance_right, shows, weaknesses
from privtraj.recipe import Recipe


class Shape(NamedTuple):
    """Of a stand-in crowd. groups: their number.  spread: standard deviation of a group.  motion:
    how far one goes.  skew: of features, as of exp(skew z); all in shares of the box."""

    groups: int
    spread: float
    motion: float
    skew: float = 0.0


STAND_INS = {
    "one wide group": Shape(1, 0.12, 0.2),
    "one skewed group": Shape(1, 0.09, 0.2, 0.6),
    "one narrow group": Shape(1, 0.04, 0.3),
    "two groups that part": Shape(2, 0.06, 0.3),
    "three groups": Shape(3, 0.05, 0.2, 0.3),
    "five groups": Shape(5, 0.05, 0.2),
}
"""Public crowds that forecasts are made on. Set by hand, so that spreads and motions span those of
ordinary tables with sensible bounds; docs/planning.md says how well they foretell others."""

# Set by hand: what is said of how many people per time.
GOOD = 20  # below it a forecast warns
POOR = 5  # below it one should expect hardly anything
_DROWNED = 2  # noise scales below which a count is hardly told from none
_BUDGET = ("epsilon", "delta", "adjacency", "measure")


@dataclass(frozen=True)
class Question:
    """Everything that a forecast follows from. people: at all times together.

    times: at which all records are, such as days of an experiment; None for any time.
    public_counts: whether numbers of people in time bins will be public.
    """

    people: int
    times: int | None
    features: int
    recipe: Recipe
    public_counts: bool = False
    records_per_person: int = 1

    @property
    def records(self) -> int:
        """Of all people together."""
        return self.people * self.records_per_person

    @property
    def by_hand(self) -> dict[str, Any]:
        """Settings of the recipe beside its budget and measure."""
        chosen = self.recipe.chosen().items()
        return {name: value for name, value in chosen if name not in _BUDGET}

    @property
    def weak(self) -> list[str]:
        """What is wrong with the guarantee that is asked for, in sentences."""
        return weaknesses(self.recipe.epsilon, self.recipe.delta, self.people)

    def to_dict(self) -> dict[str, Any]:
        own = {name: value for name, value in vars(self).items() if name != "recipe"}
        budget = {name: getattr(self.recipe, name) for name in _BUDGET}
        return {**own, **budget, "settings": self.by_hand}

    def text(self, columns: str) -> str:
        """In two lines, and what its guarantee means; columns: in words."""
        recipe, g = self.recipe, self.records_per_person
        each = "one record each" if g == 1 else f"{g} records each"
        when = "at any time"
        if self.times is not None:
            when = f"at {self.times} times ({self.records // self.times:,} per time)"
        counts = "public" if self.public_counts else "private"
        hand = ", ".join(f"{name} {value}" for name, value in sorted(self.by_hand.items()))
        right = chance_right(recipe.epsilon, recipe.delta)
        secret = "whether any one person is in the data"
        if recipe.adjacency != "add-remove":
            secret = "what any one person's records say"
        promise = (
            f"At this epsilon and delta {secret} {shows(right)}: whoever holds both for "
            f"equally likely will be right in {math.ceil(1000 * right - 1e-9) / 10:g}% of cases at "
            "most, and often in fewer; the certificate will say."
        )
        lines = (
            f"Forecast for {self.people:,} people, {each}, {when}, {columns},\n"
            f"epsilon {recipe.epsilon:g}, delta {short(recipe.delta)}, {recipe.adjacency}, numbers "
            f"of people per time {counts}" + (f", by hand: {hand}" if hand else "")
        )
        warned = [f"WARNING: {sentence}." for sentence in self.weak]
        return "\n\n".join([lines, *map(_wrapped, [promise, *warned])])


@dataclass(frozen=True)
class Remedies:
    """What alone would reach GOOD people per time, each None if nothing that was tried does."""

    epsilon: float | None
    people: int | None
    features: int | None


@dataclass(frozen=True, eq=False)
class Forecast:
    """What quality to expect of a fit, simulated on stand-ins; nothing in it is about anybody.

    epsilons: (k,) that were tried, `epsilon` among them.  curve: what to expect at each.
    settings: what the fits at `epsilon` chose, (least, most) over stand-ins.
    remedies: None where the forecast is good enough.
    simulated: people in each simulated fit.  fits: simulated at each epsilon.
    """

    question: Question
    epsilons: Floats
    curve: tuple[Estimate, ...]
    settings: dict[str, Any]
    remedies: Remedies | None
    simulated: int
    fits: int

    @property
    def epsilon(self) -> float:
        """The one that was asked for."""
        return self.question.recipe.epsilon

    @property
    def worth(self) -> Floats:
        """(k,) people per time, over the curve."""
        return np.array([level.worth for level in self.curve])

    @property
    def low(self) -> Floats:
        """(k,) below which it is in one case of twenty."""
        return np.array([level.low for level in self.curve])

    @property
    def high(self) -> Floats:
        """(k,) above which it is in one case of twenty."""
        return np.array([level.high for level in self.curve])

    @property
    def expected(self) -> Estimate:
        """At the epsilon that was asked for."""
        return self.curve[self.epsilons.tolist().index(self.epsilon)]

    @property
    def warning(self) -> str | None:
        """What to know before fitting, and what would help; None if nothing."""
        if self.remedies is None:
            return None
        question, remedies = self.question, self.remedies
        little = "hardly anything" if self.expected.worth < POOR else "little"
        start = (
            f"{question.people:,} people are few for this wish: expect {little}, as "
            f"{self.expected} per time is below {GOOD}."
        )
        tried = {
            "a larger epsilon": remedies.epsilon
            and f"epsilon {remedies.epsilon:.3g}"
            + ", which promises little to anybody" * (remedies.epsilon > LARGE_EPSILON),
            "more people": remedies.people and f"{remedies.people:,} people",
        }
        if question.features > 1:
            tried["fewer features"] = (
                remedies.features
                and f"{_of(remedies.features, 'feature')} instead of {question.features}"
            )
        helps = [str(change) for change in tried.values() if change]
        useless = [name for name, change in tried.items() if not change]
        if not helps:
            return f"{start} No single change that was tried reaches {GOOD}: combine several."
        return (
            f"{start} Any one of these alone would reach {GOOD}, by simulation: "
            f"{'; '.join(helps)}." + f" Alone, {' or '.join(useless)} would not." * bool(useless)
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "question": self.question.to_dict(),
            "expected": _written(self.expected),
            "curve": [
                {"epsilon": epsilon, **_written(level)}
                for epsilon, level in zip(self.epsilons.tolist(), self.curve, strict=True)
            ],
            "settings": self.settings,
            "remedies": None if self.remedies is None else asdict(self.remedies),
            "warning": self.warning,
            "weak_guarantee": self.question.weak,
            "largest_worth": MOST_TOLD,
            "stand_ins": list(STAND_INS),
            "fits_per_epsilon": self.fits,
            "simulated_people": self.simulated,
            "privacy_spent": 0,
        }

    @classmethod
    def from_dict(cls, values: dict[str, Any], question: Question) -> Forecast:
        """What `to_dict` wrote of the answer to this question."""
        curve = [dict(point) for point in values["curve"]]
        remedies = values["remedies"]
        return cls(
            question,
            epsilons=np.array([point.pop("epsilon") for point in curve], float),
            curve=tuple(Estimate(point.pop("worth"), **point) for point in curve),
            settings=values["settings"],
            remedies=None if remedies is None else Remedies(**remedies),
            simulated=int(values["simulated_people"]),
            fits=int(values["fits_per_epsilon"]),
        )

    def __str__(self) -> str:
        question, level, settings = self.question, self.expected, self.settings
        crowds = list(STAND_INS)
        meant = (
            "That is worse than the raw, unprotected record of a single person at each time."
            if level.worth < 1
            else "That means: people are placed as well as by the raw, unprotected records of "
            f"{level} at each time. It is about positions, not about correlations, rare values or "
            "paths."
        )
        answer = (
            f"Expect a result worth {level} per time ({about(level.low)} to {about(level.high)} in "
            f"nine cases of ten). {meant}"
        )
        rows: list[tuple[str, ...]] = [("", "epsilon", "worth", "from", "to", "people per time")]
        for epsilon, one in zip(self.epsilons, self.curve, strict=True):
            mark = "  >" if epsilon == self.epsilon else ""
            numbers = (about(one.worth) + "+" * one.or_more, about(one.low), about(one.high))
            rows.append((mark, f"{epsilon:.3g}", *numbers, ""))
        how = [f"private {settings['measure']}"]
        for key, what in (
            ("cells_per_side", "cells per feature"),
            ("particles", "particles per time"),
            ("steps", "steps"),
            ("windows", "windows of time"),
        ):
            least, most = settings[key]
            if most:
                how.append(f"{least} {what}" if least == most else f"{least} to {most} {what}")
        size = ""
        if self.simulated < question.people:
            size = (
                f"with {self.simulated:,} people instead of {question.people:,}, and as much noise "
                "per person, "
            )
        small_print = (
            f"Simulated {size}on {len(STAND_INS)} public stand-in crowds (such as {crowds[0]} or "
            f"{crowds[-1]}), and divided by what simulations were too good by on other data: "
            "no data were read and nothing was spent. Your people may be harder or easier to "
            "describe than these. The report of the fit will say the same number from the released "
            "model."
        )
        parts = [
            question.text(_of(question.features, "feature")),
            _wrapped(answer),
            "\n".join(aligned(rows, right=range(1, 5))),
            f"The fit would use {', '.join(how)}.",
            *([_wrapped(f"WARNING: {self.warning}")] if self.warning else []),
            _wrapped(small_print),
        ]
        return "\n\n".join(parts)


@dataclass(frozen=True)
class MixedForecast:
    """A plan for columns of which some are categories, or may be missing: nothing is simulated.

    columns: in words, of the table.  numbers, categories: how many there are.
    values: of all categories together.  combinations: of their values.
    measure, reason: how the budget will be spent, and why.
    count_noise: standard deviation of one count of people, if the whole budget went into one table.
    """

    question: Question
    columns: tuple[str, ...]
    numbers: int
    categories: int
    values: int
    combinations: int
    measure: str
    reason: str
    count_noise: float

    @property
    def warning(self) -> str | None:
        """What to know before fitting: values that are rarer than any noise can tell."""
        if not self.values:
            return None
        even = self.question.records / (self.values / max(self.categories, 1))
        if even >= _DROWNED * self.count_noise:
            return None
        return (
            f"{self.question.people:,} people are few for {self.values} values at this epsilon: "
            "even with all records counted together, most values drown in the noise."
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            **vars(self),
            "question": self.question.to_dict(),
            "simulated": False,
            "warning": self.warning,
            "weak_guarantee": self.question.weak,
            "privacy_spent": 0,
        }

    def __str__(self) -> str:
        kinds = (
            f"{_of(self.numbers, 'number')} and {_of(self.categories, 'category', 'categories')} "
            f"of {self.values} values together"
        )
        paragraphs = [
            f"The fit would use private {self.measure}, because {self.reason}.",
            "If the whole budget went into one table of counts, each count would be off by "
            f"about {self.count_noise:.2g} people. A fit asks for several tables, so its noise is "
            f"larger: a value that fewer than {_DROWNED * self.count_noise:.2g} people have, at "
            "all times together, can hardly be told from one that nobody has.",
            *([f"WARNING: {self.warning}"] if self.warning else []),
            "How good the people will be is not simulated for categories, and not promised: "
            "look at the report after the fit, or compare with privtraj evaluate. No data were "
            "read and nothing was spent.",
        ]
        return "\n\n".join([self.question.text(kinds), *map(_wrapped, paragraphs)])


def _written(level: Estimate) -> dict[str, Any]:
    values = asdict(level)
    return {"worth": values.pop("people"), **values}


def _wrapped(paragraph: str) -> str:
    """In lines of at most 96 letters."""
    return textwrap.fill(paragraph, 96)


def _of(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or f'{one}s'}"
