"""The certificate: every number follows from what it states, in words that promise no more."""

import hashlib
import json
import math
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

from privtraj.base.errors import InputError
from privtraj.privacy import certificate as certificate_module
from privtraj.privacy import signatures
from privtraj.privacy.accounting import Sequential, epsilon_at, gaussian_delta, tally, to_entries
from privtraj.privacy.certificate import (
    CAUTION,
    MOST_RECORDS,
    PUBLIC_COUNTS,
    Certificate,
    certify,
    certify_disjoint,
    chance_right,
    check_declared,
)
from privtraj.privacy.events import (
    ChosenTimes,
    GaussianSum,
    LaplaceCounts,
    Opaque,
    clt_mu,
)
from privtraj.privacy.ledger import Ledger

ADJACENCIES = ["add-remove", "replace-one"]
COUNTS = LaplaceCounts(0.3, "counts per time")
STEP = GaussianSum(40.0, "clipped sums, step", slack=1e-12)
SAMPLED = GaussianSum(20.0, "sampled step", 1e-15, rate=0.1)


def ledger_of(*pairs, adjacency="add-remove", epsilon=2.0, delta=1e-3):
    ledger = Ledger(epsilon, delta, adjacency)
    for event, times in pairs:
        ledger.spend(event, times)
    return ledger


def certificate_of(*pairs, private_noise=True, public_inputs=None, **budget):
    ledger = ledger_of(*pairs, **budget)
    return certify(ledger, public_inputs=public_inputs or {}, private_noise=private_noise)


EVENTS = {
    "nothing": [],
    "Gaussian": [(STEP, 60)],
    "several records": [(replace(STEP, records=3), 10), (replace(COUNTS, records=2), 1)],
    "together": [(replace(STEP, records=2, together=True), 10)],
    "Laplace": [(COUNTS, 1)],
    "Laplace per person": [(LaplaceCounts(0.1, "pairs", 0.0, 2, True, weight=4), 1)],
    "Laplace together": [(LaplaceCounts(0.1, "counts", records=2, together=True), 2)],
    "opaque": [(Opaque(0.3, 1e-5, "elsewhere"), 2)],
    "sampled": [(SAMPLED, 40)],
    "sampled together": [(replace(SAMPLED, records=2, together=True), 10)],
    "chosen times": [(ChosenTimes(0.3, SAMPLED, 20, "chosen"), 2)],
    "all kinds": [
        (replace(COUNTS, epsilon=0.1), 1),
        (STEP, 60),
        (Opaque(0.1, 1e-6, "elsewhere"), 1),
        (replace(SAMPLED, records=2), 10),
        (ChosenTimes(0.3, GaussianSum(20.0, "sampled step", 1e-15), 5, "chosen"), 1),
    ],
}


@pytest.fixture(scope="module")
def certificates():
    return {name: certificate_of(*pairs) for name, pairs in EVENTS.items()}


# Numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVENTS)
def test_what_each_entry_added_makes_the_whole(certificates, name):
    certificate = certificates[name]
    added = certificate.spending()
    assert len(added) == len(certificate.ledger)
    assert all(part > 0 for part in added)
    assert sum(added) == pytest.approx(certificate.epsilon, rel=1e-9)


def test_pure_counts_add_up_as_they_were_asked():
    first, second = LaplaceCounts(0.3, "few"), LaplaceCounts(0.5, "many")
    pure = certificate_of((first, 1), (second, 2), delta=0.0)
    assert pure.spending() == pytest.approx([0.3, 1.0])


@pytest.mark.parametrize("name", EVENTS)
def test_epsilon_follows_from_the_entries_alone(certificates, name):
    """After a round trip through JSON, by whoever reads it."""
    certificate = certificates[name]
    back = Certificate.from_dict(json.loads(certificate.to_json()))
    assert back == certificate
    recomputed = back.cost.epsilon(back.delta)
    assert recomputed == pytest.approx(certificate.epsilon, rel=1e-9, abs=1e-12)
    if len(back.ledger) < 2:  # the same again, and slow where there is much on the grid
        assert back.verify() == recomputed
    assert certificate.epsilon <= certificate.target_epsilon == 2.0


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_certificate_states_what_the_ledger_spent(adjacency):
    ledger = ledger_of((COUNTS, 1), (STEP, 60), adjacency=adjacency)
    inputs = {"bounds": np.array([[0.0, 1.0]]), "bins": np.int64(10)}
    certificate = certify(ledger, public_inputs=inputs, private_noise=True)
    other = ADJACENCIES[1 - ADJACENCIES.index(adjacency)]
    assert certificate.epsilon == ledger.spent()
    assert certificate.epsilon == epsilon_at(ledger.events, 1e-3, adjacency)
    assert certificate.epsilon_other_adjacency == epsilon_at(ledger.events, 1e-3, other)
    assert certificate.mu is None
    assert certificate.slack == pytest.approx(6e-11)
    assert certificate.public_inputs == {"bounds": [[0.0, 1.0]], "bins": 10}
    assert certificate.private
    assert certificate.model_sha256 is None


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": 0.5},
        {"epsilon": 1.9},
        {"delta": 1e-4},
        {"slack": 1e-6},
        {"mu": 0.1},
        {"mu": None},
        {"epsilon_other_adjacency": 0.7},
        {"epsilon_clt": 0.3},
        {"adjacency": "replace-one"},
        {"attacker": {"true_positive_rate": {}, "advantage": 0.0}},
        {"target_epsilon": 0.1},
        {"ledger": ()},
    ],
    ids=str,
)
def test_a_number_that_does_not_follow_from_the_ledger_is_found_out(certificates, change):
    certificate = certificates["Gaussian"]
    assert certificate.verify() == pytest.approx(certificate.epsilon, rel=1e-9)
    with pytest.raises(InputError, match="the certificate was changed: it"):
        replace(certificate, **change).verify()


def test_a_ledger_that_does_not_lead_to_the_numbers_is_found_out(certificates):
    certificate = certificates["Gaussian"]
    for change in ({"times": 59}, {"noise_multiplier": 41.0}, {"records": 2}, {"rate": 0.5}):
        entry = {**certificate.ledger[0], **change}
        with pytest.raises(InputError, match=r"does not follow from its ledger|ledger cannot be"):
            replace(certificate, ledger=(entry,)).verify()


@pytest.mark.parametrize(
    "change",
    [{"times": "many"}, {"times": 0}, {"noise_multiplier": -1.0}, {"records": 0}, {"rate": 2.0}],
    ids=str,
)
def test_entries_that_are_no_events_are_refused(certificates, change):
    entry = {**certificates["Gaussian"].ledger[0], **change}
    with pytest.raises(InputError):
        replace(certificates["Gaussian"], ledger=(entry,)).verify()
    entry.pop("what")
    with pytest.raises(InputError, match="cannot be read"):
        replace(certificates["Gaussian"], ledger=(entry,)).verify()


def test_the_attacker_is_the_one_of_the_tally(certificates):
    gaussian = certificates["Gaussian"]
    mu = math.sqrt(60) / 40
    assert gaussian.mu == pytest.approx(mu)
    assert gaussian.attacker["advantage"] == pytest.approx(float(gaussian_delta(0.0, mu)), rel=1e-6)
    rates = gaussian.attacker["true_positive_rate"]
    assert list(rates) == ["0.001", "0.01", "0.1"]
    for alarm, found in rates.items():
        assert float(alarm) < found < math.exp(gaussian.epsilon) * float(alarm) + 1e-3
    nothing = certificates["nothing"].attacker
    assert nothing == {
        "true_positive_rate": pytest.approx({"0.001": 0.001, "0.01": 0.01, "0.1": 0.1}),
        "advantage": 0.0,
    }


def test_the_central_limit_is_given_for_sampled_steps_and_is_too_small(certificates):
    for name in ("nothing", "Gaussian", "Laplace", "opaque", "chosen times", "sampled together"):
        assert certificates[name].epsilon_clt is None
    certificate = certificates["sampled"]
    limit = tally([GaussianSum(1 / clt_mu(20.0, 0.1, 40), "")], "add-remove").epsilon(1e-3)
    assert certificate.epsilon_clt == pytest.approx(limit, rel=1e-6)
    assert certificate.epsilon_clt < certificate.epsilon
    replaced = certificate_of((SAMPLED, 3), adjacency="replace-one")
    assert replaced.epsilon_clt is None  # the limit is another one there


def test_an_unreachable_delta_of_the_other_adjacency_survives_json():
    certificate = certificate_of((GaussianSum(2.0, "sum", slack=4e-8), 1), epsilon=3.0, delta=1e-6)
    assert certificate.epsilon_other_adjacency == math.inf
    assert json.loads(certificate.to_json())["epsilon_other_adjacency"] is None
    assert Certificate.from_dict(certificate.to_dict()) == certificate


def test_a_guarantee_for_replacing_is_unreachable_for_adding():
    opaque = Opaque(0.3, 1e-5, "elsewhere", "replace-one")
    certificate = certificate_of((opaque, 1), adjacency="replace-one", delta=1e-5)
    assert certificate.epsilon == pytest.approx(0.3)
    assert certificate.epsilon_other_adjacency == math.inf
    assert Certificate.from_dict(json.loads(certificate.to_json())) == certificate


# Entries --------------------------------------------------------------------------------------


def test_entries_merge_runs_of_identical_events():
    events = [(COUNTS, 1), *[(STEP, 1)] * 58, (STEP, 2), (COUNTS, 1)]
    counts, steps, again = to_entries(Sequential(tuple(events)), "add-remove")
    assert counts["mechanism"] == "discrete Laplace"
    assert (counts["times"], counts["noise_epsilon"], counts["epsilon"]) == (1, 0.3, 0.3)
    assert (steps["what"], steps["mechanism"]) == ("clipped sums, step", "Gaussian")
    assert (steps["times"], steps["noise_multiplier"]) == (60, 40.0)
    assert steps["mu"] == pytest.approx(math.sqrt(60) / 40)
    assert again == counts
    assert to_entries(Sequential(tuple(events)), "replace-one")[0]["epsilon"] == 0.6


def test_equal_releases_of_different_slack_are_one_entry_that_can_be_verified():
    """Counts of more cells draw more noise; an entry does not say how much, the sum does."""
    ledger = Ledger(3.0, 1e-5)
    ledger.spend(GaussianSum(5.0, "sums", slack=1e-12))
    ledger.spend(GaussianSum(5.0, "sums", slack=2e-12))
    certificate = certify(ledger, public_inputs={}, private_noise=True)
    assert [entry["times"] for entry in certificate.ledger] == [2]
    assert certificate.slack == 3e-12
    assert certificate.verify() == pytest.approx(ledger.spent())


def test_entries_name_records_rates_shares_and_steps(certificates):
    entry = certificates["sampled together"].ledger[0]
    assert (entry["records"], entry["together"], entry["rate"]) == (2, True, 0.1)
    entry = certificates["chosen times"].ledger[0]
    assert (entry["share"], entry["steps"], entry["times"], entry["rate"]) == (0.3, 20, 2, 0.1)
    entry = certificates["opaque"].ledger[0]
    assert (entry["epsilon"], entry["delta"], entry["adjacency"]) == (0.3, 1e-5, "add-remove")
    counts = certificates["several records"].ledger[1]
    assert counts["epsilon"] == pytest.approx(0.6)  # two records, each of 0.3


# Words ----------------------------------------------------------------------------------------


def test_a_certificate_reads_in_plain_words(certificates):
    text = str(replace(certificates["all kinds"], public_inputs={"bounds": [0, 1]}))
    assert "whether one person is in the data at all (add-remove)" in text
    assert "what one person's records say (replace-one)" in text
    assert "60 x clipped sums, step" in text
    assert "sampling rate 0.1" in text
    assert "share of the times 0.3" in text
    assert "Taken as public: bounds." in text
    assert "NOT PRIVATE" not in text
    assert "Model: sha256 none yet." in text
    assert "Model: sha256 abc." in str(replace(certificates["Laplace"], model_sha256="abc"))
    assert "nothing was released" in str(certificates["nothing"])


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_both_epsilons_and_the_attacker_are_printed_and_rounded_up(adjacency):
    certificate = certificate_of((COUNTS, 1), (STEP, 60), adjacency=adjacency)
    text = str(certificate)

    def printed(after):
        return float(text.split(after)[1].split(",")[0].split(".\n")[0].rstrip(".)"))

    for shown, exact in [
        (printed("privacy with epsilon = "), certificate.epsilon),
        (printed(") the same release has epsilon = "), certificate.epsilon_other_adjacency),
        (printed("advantage at most "), certificate.attacker["advantage"]),
    ]:
        assert exact <= shown <= exact * 1.001
    assert "0.1%, 1%, 10% false alarms" in text
    shares = text.split("with probability at most ")[1].split(" (")[0].split(", ")
    rates = certificate.attacker["true_positive_rate"].values()
    for share, rate in zip(shares, rates, strict=True):
        assert rate <= float(share.rstrip("%")) / 100 + 1e-12 <= rate + 0.0011


def test_printed_epsilon_is_rounded_up():
    certificate = certificate_of((LaplaceCounts(1.23411, "counts"), 1), delta=0.0)
    assert "epsilon = 1.235," in str(certificate)


def test_the_central_limit_is_printed_as_no_guarantee(certificates):
    text = str(certificates["sampled"])
    line = next(line for line in text.splitlines() if "central limit" in line)
    assert f"{certificates['sampled'].epsilon_clt:.4g}" in line
    assert "not a guarantee" in line
    assert "Guarantee" not in line
    assert "central limit" not in str(certificates["Gaussian"])


def test_gaussian_only_certificates_carry_mu():
    certificate = certificate_of((GaussianSum(8.0, "sum"), 1), adjacency="replace-one")
    assert certificate.mu == 0.25
    assert "0.25-Gaussian" in str(certificate)


def test_seeded_noise_is_loudly_not_private():
    certificate = certificate_of((COUNTS, 1), private_noise=False)
    assert not certificate.private
    assert str(certificate).startswith("NOT PRIVATE")
    assert "NOT PRIVATE" in certificate.noise


# Mistakes -------------------------------------------------------------------------------------


def test_certificates_without_a_part_or_of_another_adjacency_are_refused(certificates):
    values = certificates["Laplace"].to_dict()
    later = {"found", "declared", "source_sha256", "signature"}
    for name in (f.name for f in fields(Certificate) if f.name not in later):
        with pytest.raises(InputError, match=f"lacks {name}"):
            Certificate.from_dict({k: v for k, v in values.items() if k != name})
    with pytest.raises(InputError, match="adjacency"):
        Certificate.from_dict({**values, "adjacency": "swap"})


# What a steward declares, and which code it was -------------------------------------------------

SAID = {"title": "Growth <b>of</b> children", "controller": "County Clinic", "date": "2026-11-30"}


def test_what_is_declared_is_kept_shown_and_part_of_what_is_signed():
    plain = certificate_of((COUNTS, 1))
    certificate = replace(plain, declared=check_declared(dict(reversed(SAID.items()))))
    assert list(certificate.declared) == ["title", "controller", "date"]
    again = Certificate.from_dict(json.loads(certificate.to_json()))
    assert again == certificate
    again.verify()
    assert "Controller (declared): County Clinic" in str(again)
    assert "declared" not in plain.to_dict()  # so that hashes of older certificates stay
    assert signatures._message(plain) != signatures._message(certificate)


@pytest.mark.parametrize(
    "wrong",
    [
        {"title": "two\nlines"},
        {"title": "red \x1b[31m"},
        {"contact": "turned \u202e around"},
        {"purpose": ""},
        {"purpose": "x" * 301},
        {"controller": 7},
        {"date": "30.11.2026"},
        {"epsilon": "0.1"},
    ],
    ids=str,
)
def test_nothing_is_declared_that_could_hide_what_stands_beside_it(wrong):
    with pytest.raises(InputError, match=r"must be|nothing to declare"):
        check_declared(wrong)
    if "date" not in wrong:
        forged = {**certificate_of((COUNTS, 1)).to_dict(), "declared": wrong}
        with pytest.raises(InputError, match="declared cannot be read"):
            Certificate.from_dict(forged)


def test_a_certificate_names_the_code_of_the_trusted_base(tmp_path, monkeypatch):
    known = certificate_of((COUNTS, 1)).source_sha256
    folder = Path(certificate_module.__file__).parent
    lines = sorted((file.name, file.read_bytes()) for file in folder.glob("*.py"))
    text = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in lines)
    assert known == hashlib.sha256(text.encode()).hexdigest()
    for name, data in lines:
        (tmp_path / name).write_bytes(data)
    monkeypatch.setattr(certificate_module, "__file__", str(tmp_path / "certificate.py"))
    assert certificate_module.source.__wrapped__() == known
    (tmp_path / "noise.py").write_bytes(b"def laplace(): return 0\n")
    assert certificate_module.source.__wrapped__() != known


@pytest.mark.parametrize("public", [{}, {PUBLIC_COUNTS: [50, 50]}], ids=["counted", "public"])
def test_a_large_epsilon_is_warned_of_wherever_it_is_read(public):
    budget = {"epsilon": 9.5, "delta": 0.0}
    known = certificate_of((LaplaceCounts(9.0, "counts"), 1), public_inputs=public, **budget)
    cautious = replace(known, found={CAUTION: "delta is large"})
    for one in (known, cautious):
        assert any("epsilon = 9 is above 8" in words for words in one.warnings)


def test_chances_are_those_of_the_definition_and_never_above_one():
    for epsilon, delta in ((0.0, 0.0), (1.0, 0.01), (3.0, 0.2), (0.1, 1.0)):
        exact = (math.exp(epsilon) + delta) / (math.exp(epsilon) + 1)
        assert chance_right(epsilon, delta) == pytest.approx(min(exact, 1.0), rel=1e-12)
    forged = replace(certificate_of((COUNTS, 1)), attacker={"advantage": 3.0})
    assert forged.chance_right == 1.0


def test_time_bins_are_spoken_of_only_where_they_are_public():
    plain = certificate_of((COUNTS, 1), adjacency="replace-one")
    public = {PUBLIC_COUNTS: [50, 50], MOST_RECORDS: 1}
    binned = certificate_of((COUNTS, 1), adjacency="replace-one", public_inputs=public)
    assert "same time bins" not in str(plain)
    assert "A person has" not in str(plain)
    assert "both in the same time bins," in str(binned)
    assert "A person has at most one record." in str(binned)


def test_the_budget_of_different_people_is_the_largest_of_theirs():
    some = [certificate_of((COUNTS, 1), epsilon=budget) for budget in (2.0, 5.0, 1.0)]
    joined = certify_disjoint(some, public_inputs={})
    assert (joined.target_epsilon, joined.epsilon) == (5.0, some[0].epsilon)


def test_another_computers_sum_may_be_off_by_its_rounding_and_no_more():
    made = certify(ledger_of((COUNTS, 1)), public_inputs={}, private_noise=True)
    replace(made, target_epsilon=made.epsilon * (1 - 1e-7)).verify()
    with pytest.raises(InputError, match="more than its budget"):
        replace(made, target_epsilon=made.epsilon * (1 - 1e-5)).verify()
