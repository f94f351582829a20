"""The dossier: what a data protection officer asks before a release, answered by its certificate.

One HTML page without scripts; the browser's print makes a PDF of it. Made from the certificate, and
from a ledger where one is given: no record is read. Sentences stand in `assets/dossier.html`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from privtraj.base.errors import Arg, InputError, short
from privtraj.privacy.certificate import CHECKED, STATED
from privtraj.privacy.ledger import up
from privtraj.report.labels import percent_up
from privtraj.report.page import Page, budget, declared, facts, settings, subject

if TYPE_CHECKING:
    from privtraj.model.model import TrajectoryModel


class Release(NamedTuple):
    """A release of others: what it was, what its epsilon is and is about, and who says so."""

    what: str
    epsilon: str
    about: str
    source: str


OTHERS = (
    Release(
        "US Census 2020, redistricting data",
        "19.61 (people 17.14, housing 2.47), delta 1e-10",
        "a person's record, once",
        "Census Bureau Sets Key Parameters to Protect Privacy in 2020 Census Results, 2021, "
        "US Census Bureau",
    ),
    Release(
        "Live births of Israel, 2014",
        "9.98",
        "a birth, once",
        "S. Hod and R. Canetti, Differentially Private Release of Israel's National Registry of "
        "Live Births, 2024, arXiv 2405.00267",
    ),
    Release(
        "Google mobility reports",
        "2.64 a day",
        "a person's day",
        "A. Aktay et al., Google COVID-19 Community Mobility Reports: Anonymization Process "
        "Description, 2020, arXiv 2004.04145",
    ),
    Release(
        "Wikipedia page views by country",
        "1 a day, delta 1e-7",
        "the first ten pages of a device on a day",
        "T. Adeleye et al., Publishing Wikipedia Usage Data with Strong Privacy Guarantees, 2023, "
        "arXiv 2308.16298",
    ),
    Release(
        "Apple, emoji and health types",
        "4 and 2 a day",
        "a person's day, noise on the device",
        "Differential Privacy, technical overview, 2017, Apple",
    ),
)
"""What they protect differs, so the numbers are neighbours and no measure of each other."""


def dossier(model: TrajectoryModel, ledger: Mapping[str, Any] | None = None) -> Page:
    """The page about a model. ledger: summary of a `LedgerFile`, which has to know the model."""
    certificate = model.certificate
    public = certificate.public_inputs
    values = {
        "kind": "dossier",
        "certificate": certificate,
        "figures": [
            (up(certificate.epsilon), "Epsilon"),
            (short(certificate.delta), "Delta"),
            (percent_up(certificate.chance_right), "Best attacker is right, at most"),
            (up(certificate.attacker["advantage"]), "Advantage over guessing, at most"),
        ],
        "title": certificate.declared.get(
            "title", f"{subject(model.columns)} over {model.time_name}"
        ),
        "facts": facts(certificate),
        "found": [
            (percent_up(float(alarms)), percent_up(rate))
            for alarms, rate in certificate.attacker["true_positive_rate"].items()
        ],
        "columns": declared(model.columns),
        "public": [
            row for row in settings(model)["public_inputs"] if row[0] not in (STATED, CHECKED)
        ],
        "stated": public.get(STATED, []),
        "checked": public.get(CHECKED, []),
        "budget": budget(certificate),
        "years": None if ledger is None else _years(model, ledger),
        "ledger": ledger,
        "others": OTHERS,
        "sha256": model.sha256,
    }
    return Page("dossier.html", values, {}, scripts=())


def _years(model: TrajectoryModel, ledger: Mapping[str, Any]) -> list[tuple[str, int, str, str]]:
    """Of each year and of all: how many releases, and the sums of epsilon and delta."""
    entries = ledger["entries"]
    if not any(entry["model"] == model.sha256 for entry in entries):
        known = " does not know this model: give the one that its fit was told of"
        raise InputError(Arg("ledger"), known)
    years = defaultdict(list)
    for entry in entries:
        years[entry["time"][:4]].append(entry)
        years["all"].append(entry)
    return [
        (year, len(some), *(up(sum(one[name] for one in some)) for name in ("epsilon", "delta")))
        for year, some in sorted(years.items())
    ]
