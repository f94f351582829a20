"""What can be said of a fit of mixed columns beforehand: how it will measure, and with what noise.

Nothing is simulated: stand-ins are people with numbers, and how well categories come out depends on
how they hang together, which nobody knows before. So no quality is promised.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from privtraj.assess.planning.question import Question
from privtraj.assess.planning.words import asked, wrapped
from privtraj.columns.axes import Axes
from privtraj.columns.kinds import Category, Column, Number

_WHY = {
    "counts": "{} can be counted all together",
    "gradients": "{} have too many cells to be counted all together",
    "marginals": "tables of two columns at a time are few and small",
}
_DROWNED = 2  # noise scales below which a count is hardly told from none


@dataclass(frozen=True)
class MixedForecast:
    """A plan for columns of which some are categories, or may be missing.

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
        """For JSON."""
        question = {**asdict(self.question), "settings": dict(self.question.settings)}
        own = {name: value for name, value in asdict(self).items() if name != "question"}
        return {
            "question": question,
            **own,
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
        noise, drowned = f"{self.count_noise:.2g}", f"{_DROWNED * self.count_noise:.2g}"
        parts = [
            asked(self.question, kinds),
            wrapped(f"The fit would use private {self.measure}, because {self.reason}."),
            wrapped(
                "If the whole budget went into one table of counts, each count would be off by "
                f"about {noise} people. A fit asks for several tables, so its noise is larger: a "
                f"value that fewer than {drowned} people have, at all times together, can hardly "
                "be told from one that nobody has."
            ),
            wrapped(
                "How good the people will be is not simulated for categories, and not promised: "
                "look at the report after the fit, or compare with privtraj evaluate. No data were "
                "read and nothing was spent."
            ),
        ]
        if self.warning is not None:
            parts.insert(3, wrapped(f"WARNING: {self.warning}"))
        return "\n\n".join(parts)


def outlook(question: Question, columns: Sequence[Column]) -> MixedForecast:
    """What is known without any data of a fit of these columns."""
    synthesizer, axes = question.synthesizer(), Axes.of(columns)
    measure = synthesizer.measure_for(axes)
    told = [column for column in columns if not column.of]
    levels = [column.levels for column in told if isinstance(column, Category)]
    return MixedForecast(
        question,
        tuple(map(str, told)),
        numbers=sum(isinstance(column, Number) for column in told),
        categories=len(levels),
        values=sum(levels),
        combinations=math.prod(levels),
        measure=measure,
        reason=_reason(question, measure, len(told), len(levels)),
        count_noise=_count_noise(question),
    )


def _reason(question: Question, measure: str, columns: int, categories: int) -> str:
    """Why the public rule of the synthesizer chooses it, in words."""
    if question.measure != "auto":
        return "you set it by hand"
    if question.delta == 0:
        return "delta is 0, and only counts do without one"
    what = "some numbers may be missing"
    if categories:
        be = "is" if categories == 1 else "are"
        what = f"there {be} {_of(categories, 'category', 'categories')} among the columns"
    return f"{what}, and {_WHY[measure].format(_of(columns, 'column'))}"


def _count_noise(question: Question) -> float:
    """Deviation of a count, when the whole budget buys one table of counts of disjoint cells.

    Gaussian of deviation z where there is a delta, else Laplace of scale 1 / e; records of a person
    are taken to be in different cells, which is the best case.
    """
    from privtraj.privacy.calibration import calibrate_gaussian, calibrate_laplace
    from privtraj.privacy.events import Person

    person = Person(question.records_per_person, False)
    if question.delta == 0:
        e = calibrate_laplace(question.epsilon, 0.0, question.adjacency, person=person)
        return math.sqrt(2) / e
    mu = calibrate_gaussian(question.epsilon, question.delta, question.adjacency, person=person)
    return 1 / mu


def _of(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or f'{one}s'}"
