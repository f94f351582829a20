"""What the counts of a table say of what is declared of it, in sentences, the gravest first.

No sentence has a value of the table in it, but for codes of a public list that seem to mean
missing, and none says what a range should be: it is to come from public knowledge, and a range that
was corrected by looking at the records no longer does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from privtraj.assess.common import LEVELS, Finding, Words
from privtraj.assess.tally import PARTS, ColumnTally, TableTally
from privtraj.base.errors import Arg, InputError, Said, first_few, listed
from privtraj.columns.kinds import Angle, Category, Date, Integer, LogNumber, Number
from privtraj.data import records as checks
from privtraj.data.detection import CONSTANT, settings_of
from privtraj.data.dialect import DATE, NUMBER

# Set by hand: shares of records.
MOST_OUTSIDE = 0.5  # outside a range that is plainly wrong: of another thing, or in another unit
SOME_OUTSIDE = 0.02  # outside one that is doubtful: as many people are moved to its ends
NEARLY_ALL = 0.98  # in one part of a range, which leaves nothing to tell apart
MANY_AT_BOUND = 0.2  # exactly at a bound, worth a word: a limit of detection, or clamped
FAR_OFF = 2.0  # how many times more, or fewer, records than public numbers say are plainly others


def findings(
    tally: TableTally,
    unused: Mapping[str, str],
    csv: bool,
    public_counts: Sequence[float] | None,
) -> tuple[Finding, ...]:
    """All of them. unused: {name: kind} of other columns.  csv: whether cells came as text."""
    found = [
        *_of_people(tally),
        *_of_time(tally, csv),
        *_of_columns(tally, csv),
        *_of_table(tally, unused, public_counts),
    ]
    return tuple(sorted(found, key=lambda one: LEVELS.index(one.verdict)))


def share(part: int, whole: int) -> str:
    """As many per cent as can be told."""
    percent = 100 * part / max(whole, 1)
    if 0 < percent < 0.1:
        return "below 0.1 %"
    if 99.9 < percent < 100:
        return "above 99.9 %"
    return f"{percent:.1f} %" if 0 < percent < 10 or 90 < percent < 100 else f"{percent:.0f} %"


def _refused(check: Callable[..., None], *counts: Any, name: str | None = None) -> list[Finding]:
    """The sentence that a fit would stop with, if it would."""
    try:
        check(*counts)
    except InputError as error:
        return [Finding(name, "refused", error.args)]
    return []


def _of_people(tally: TableTally) -> Iterator[Finding]:
    """What a fit would refuse, and whose records they are."""
    people, public = tally.people, tally.public
    for name, error in tally.refused.items():
        yield Finding(name, "refused", error.args)
    yield from _refused(checks.check, "infinite", tally.infinite)
    if public.missing == "refuse":
        yield from _refused(checks.check, "missing", tally.absent)
    usable = tally.records - (tally.absent.records if public.missing == "drop" else 0)
    if public.one_per_person == "random" and people is not None:
        usable = min(usable, people.more_than(0))
    yield from _refused(checks.check_enough, usable)
    if people is None:
        seen = "no column says whose a record is, so nobody checks that each is another person's"
        yield Finding(None, "note", (seen,), ("name it with ", Arg("person="), ", if there is one"))
        return
    nobodys = checks.FaultCount([], tally.unidentified, tally.records)
    yield from _refused(checks.check, "unidentified", nobodys)
    several, most, everybody = people.more_than(1), public.most_records, people.more_than(0)
    if several and public.one_each:
        yield from _refused(checks.refuse_several, several, everybody)
    elif people.more_than(most):
        seen = (
            f"{people.more_than(most)} of {everybody} people have more records than the {most} "
            f"that are kept, one of them {people.counts.max()}"
        )
        yield Finding(tally.person, "note", (seen,), ("which are kept is left to chance",))


# Ranges ---------------------------------------------------------------------------------------


def _of_time(tally: TableTally, csv: bool) -> Iterator[Finding]:
    time, name, known = tally.time, tally.time.name, tally.time.counts["known"]
    if name in tally.refused:
        return
    yield from _unreadable(tally, time, csv)
    advice: Words = ("check ", Arg("time_range"), " and the unit of the column")
    words = [f"have '{name}' {where} the time range" for where in ("before", "after", "outside")]
    yield from _outside(time, words, advice)
    if not known:
        return
    empty, fullest, bins = int((time.parts == 0).sum()), int(time.parts.max()), len(time.parts)
    if fullest >= NEARLY_ALL * known and time.outside <= MOST_OUTSIDE * known:
        seen = (
            f"{share(fullest, known)} of the records are nearest to one of the {bins} times "
            "of interest, so there is hardly anything over time to tell"
        )
        advice = ("check ", Arg("time_range"), f" and the unit of '{name}'")
        yield Finding(name, "wrong", (seen,), advice, {"share": fullest / known})
    elif empty:
        have = "has no record nearest to it" if empty == 1 else "have no record nearest to them"
        seen = f"{empty} of the {bins} times of interest {have}"
        fixed = Arg("bins", option="bin_times")
        advice = ("where records are at few fixed times, list these with ", fixed)
        yield Finding(name, "note", (seen,), advice)


def _of_columns(tally: TableTally, csv: bool) -> Iterator[Finding]:
    for column in tally.public.asked:
        if column.name in tally.refused:
            continue
        found = tally.columns[column.name]
        if isinstance(column, Category):
            yield from _of_category(found.counts, column, tally.records)
        if isinstance(column, Number):
            yield from _of_number(tally, found, column, csv)
        if tally.records and not found.counts["known"] and column.missing:
            seen = f"no record has a value of '{column.name}'"
            yield Finding(column.name, "wrong", (seen,), ("check the column",))


def _of_number(
    tally: TableTally, found: ColumnTally, column: Number, csv: bool
) -> Iterator[Finding]:
    name, counts, advice = column.name, found.counts, ("check its bounds and its unit",)
    known = counts["known"]
    yield from _unreadable(tally, found, csv)
    yield from _of_values(found, column)
    broken = checks.FaultCount([name], counts["broken"], tally.records)
    yield from _refused(checks.check, "broken", broken, name=name)
    bounds = str(column).removeprefix(f"{name} in ").split(" or missing")[0].split(" (fixed)")[0]
    words = [f"have '{name}' {where} {bounds}" for where in ("below", "above", "outside")]
    yield from _outside(found, words, advice)
    if not known or found.outside > MOST_OUTSIDE * known or isinstance(column, Integer):
        return
    fullest = int(found.parts.max())
    if fullest >= NEARLY_ALL * known:
        seen = (
            f"{share(fullest, known)} of the values of '{name}' are in "
            f"{100 // PARTS} % of its range, so hardly any difference will be seen"
        )
        yield Finding(name, "doubtful", (seen,), advice, {"share": fullest / known})
    for end, many in (("lower", counts["at_low"]), ("upper", counts["at_high"])):
        if many > MANY_AT_BOUND * known:
            seen = f"{share(many, known)} of the values of '{name}' are its {end} bound"
            measured = "make sure that they were measured, not cut off or filled in"
            yield Finding(name, "note", (seen,), (measured,), {"share": many / known})


def _of_values(found: ColumnTally, column: Number) -> Iterator[Finding]:
    """Codes that seem to mean missing, one value alone, and what a log scale would serve better."""
    if isinstance(column, Date | Angle):
        return
    name, seen = column.name, settings_of(found.sample)
    typed = f"--column {name} {column.kind} low=... high=..."
    if codes := seen.get("missing_codes"):
        texts = ",".join(map(str, codes))
        said = f"'{name}' has values of {texts}, far from all others"
        means = "if the code book says that they mean missing, declare "
        both = Said(
            f"missing=True, missing_codes={codes}", f"{typed} missing missing_codes={texts}"
        )
        yield Finding(name, "doubtful", (said,), (means, both))
    if "constant" in seen:
        yield Finding(name, "note", (f"all values of '{name}' seem to be the same",), (CONSTANT,))
    if "scale" in seen and not isinstance(column, LogNumber | Integer):
        said = f"'{name}' is skewed"
        ratios = "if its ratios matter, declare "
        both = Said("pt.LogNumber(low, high)", f"{typed} scale=log")
        yield Finding(name, "note", (said,), (ratios, both))


def _outside(found: ColumnTally, words: Sequence[str], advice: Words) -> Iterator[Finding]:
    """words: of records that are below, above and on both sides."""
    below, above, both = words
    name, counts, known = found.name, found.counts, found.counts["known"]
    if found.outside <= SOME_OUTSIDE * known:
        return
    where = both if counts["below"] and counts["above"] else below if counts["below"] else above
    ends = "its ends" if where is both else "its end"
    seen = f"{share(found.outside, known)} of the records {where}, and move to {ends}"
    wrong = found.outside > MOST_OUTSIDE * known
    numbers = {"share": found.outside / known}
    yield Finding(name, "wrong" if wrong else "doubtful", (seen,), advice, numbers)


def _unreadable(tally: TableTally, found: ColumnTally, csv: bool) -> list[Finding]:
    """Cells that are no numbers or dates; of CSV in the words of a fit, and why they may not be."""
    name, readings, unreadable = found.name, found.readings, found.counts["unreadable"]
    many = f"{unreadable} of {tally.records} cells"
    if not csv:
        numbers = readings.kind == NUMBER
        if not found.stored_as_text or not (numbers or unreadable):
            return []
        kind = "numbers" if numbers else "dates"
        seen = f"the {kind} of '{name}' are stored as text, of which {many} do not read as {kind}"
        advice = "turn them into numbers" if numbers else "write all of them as 2024-01-31"
        return [Finding(name, "refused", (seen,), (advice,))]
    if not unreadable:
        return []
    if readings.dialect.unreadable == "missing":
        seen = f"{many} of '{name}' are no {readings.kind.word}s"
        return [Finding(name, "doubtful", (seen,), ("they count as missing, as you declared",))]
    error, dates = readings.error(), tally.public.axis.datetime
    if found is tally.time and error.reads_as is not None:
        other = _refused(checks.check_same_kind, error.reads_as == DATE, dates, name, name=name)
        if other:
            return other
    return [Finding(name, "refused", error.args)]


def _of_category(counts: Mapping[str, int], column: Category, records: int) -> Iterator[Finding]:
    name, known, undeclared = column.name, counts["known"], counts["undeclared"]
    if column.other is None:
        strange = checks.FaultCount([name], undeclared, records)
        yield from _refused(checks.check, checks.undeclared_in(column), strange, name=name)
    elif undeclared > MOST_OUTSIDE * known:
        verdict = "wrong" if undeclared >= NEARLY_ALL * known else "doubtful"
        advice = f"check its values, or all of these become '{column.other}'"
        seen = f"{share(undeclared, known)} of the values of '{name}' are not declared"
        yield Finding(name, verdict, (seen,), (advice,), {"share": undeclared / known})
    if counts["misspelt"]:
        seen = (
            f"{counts['misspelt']} of {records} values of '{name}' differ from a declared one by "
            "blanks or capitals alone"
        )
        yield Finding(name, "doubtful", (seen,), ("write them as declared",))


def _of_table(
    tally: TableTally, unused: Mapping[str, str], public_counts: Sequence[float] | None
) -> Iterator[Finding]:
    """Places outside the domain, other numbers of records than public ones, equal rows, and columns
    that are not used."""
    domain, outside, placed = tally.domain, tally.outside_domain, tally.placed
    if domain is not None and outside > SOME_OUTSIDE * placed:
        names = listed([str(domain.x), str(domain.y)])
        seen = f"{share(outside, placed)} of the places {names} are not in the domain"
        verdict = "wrong" if outside > MOST_OUTSIDE * placed else "doubtful"
        advice = "check the domain, the unit of the columns, and which is x and which is y"
        yield Finding(None, verdict, (seen,), (advice,), {"share": outside / placed})
    stated = tally.records if public_counts is None else sum(public_counts)
    if stated * FAR_OFF < tally.records or stated > FAR_OFF * tally.records > 0:
        seen = f"the table has {tally.records} records, and the public numbers are {stated:g}"
        about = ("check ", Arg("public_counts"), ", and that this is the table they are about")
        yield Finding(None, "wrong", (seen,), about)
    many = f"{tally.repeated_rows} of {tally.records} records"
    if tally.repeated_rows and tally.people is not None:
        seen = f"{many} are equal to an earlier one of the same person, in time and all columns"
        yield Finding(None, "doubtful", (seen,), ("remove what was copied by mistake",))
    elif tally.repeated_rows:
        seen = f"{many} are equal to an earlier one in time and all columns"
        often = tally.repeated_rows > SOME_OUTSIDE * tally.records
        twice = ("if a person is there twice, name who it is with ", Arg("person="))
        yield Finding(None, "doubtful" if often else "note", (seen,), twice)
    texts = [name for name, kind in unused.items() if kind in ("text", "mixed")]
    others = [name for name in unused if name not in texts]
    if texts:
        option = Arg("columns", option="column")
        wanted = ("declare one that is wanted as a category, with ", option)
        yield Finding(None, "note", (f"columns of text are not used: {first_few(texts)}",), wanted)
    if others:
        yield Finding(None, "note", (f"other columns are not used: {first_few(others)}",))
