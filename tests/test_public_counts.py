"""Public numbers of people: given, never read; and what a certificate then promises, and not."""

import json
import warnings

import numpy as np
import pytest

import baselines
import privtraj as pt
from privtraj import cli, paper
from privtraj.base.errors import InputError
from privtraj.privacy.certificate import PUBLIC_COUNTS

T, N = 3, 30
GIVEN = [41.0, 17.0, 12.0]  # not those of the data below
MAKERS = {
    "counts": lambda **how: pt.TrajectorySynthesizer(2.0, 1e-5, cells=4, particles=8, **how),
    "gradients": lambda **how: pt.TrajectorySynthesizer(
        2.0, 1e-5, measure="gradients", particles=4, steps=2, **how
    ),
    "sampled": lambda **how: paper.SampledSynthesizer(
        2.0, 1e-5, rate=0.5, particles=4, steps=2, **how
    ),
    "baseline": lambda **how: baselines.ThresholdedHistogram(2.0, 1e-5, points=8, **how),
    "paper": lambda **how: paper.PaperSynthesizer([paper.Phase(2, 0.01, 9.0)], m=4, **how),
}


def people(n=N):
    rng = np.random.default_rng(0)
    points = rng.uniform(size=(T * N, 2))[: n * T]
    when = np.tile(np.arange(float(T)), n)
    return pt.Snapshots.from_arrays(when, points, bounds=[(0, 1)] * 2, bins=np.arange(float(T)))


def fitted(kind, snapshots, **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pt.LowBudgetWarning)
        return MAKERS[kind](**how).fit(snapshots)


@pytest.mark.parametrize("kind", MAKERS)
def test_add_remove_is_refused_before_anything_is_spent(kind):
    """Exact numbers of two neighbours would differ by one on their certificates."""
    with pytest.raises(InputError, match="whether a person is in the data"):
        fitted(kind, people(), public_counts=GIVEN)


@pytest.mark.parametrize(
    "kind",
    [*sorted(MAKERS.keys() - {"sampled"}), pytest.param("sampled", marks=pytest.mark.thorough)],
)
def test_numbers_are_those_given_and_never_those_of_the_data(kind):
    """Two tables of other sizes under one seed: nothing about their sizes is told for free."""
    how = {"adjacency": "replace-one", "public_counts": GIVEN, "seed": 1}
    for snapshots in (people(), people(N // 2)):
        model = fitted(kind, snapshots, **how)
        assert model.certificate.public_inputs[PUBLIC_COUNTS] == GIVEN
        text = json.dumps([model.certificate.to_dict(), model.settings, model.diagnostics])
        assert "people per time" not in [entry["what"] for entry in model.certificate.ledger]
        assert f"[{N}.0" not in text
        assert f"[{N // 2}.0" not in text
        if "people_per_time" in model.diagnostics:
            assert sum(model.diagnostics["people_per_time"]) == sum(GIVEN)


@pytest.mark.parametrize("counts", [True, "41", 41, [41, True, 3], [1, 2, np.nan], [1, -2, 3]])
def test_a_statement_that_numbers_are_public_is_no_number(counts):
    with pytest.raises(InputError, match="public_counts must be"):
        fitted("counts", people(), adjacency="replace-one", public_counts=counts)


@pytest.fixture(scope="module")
def public():
    return fitted("counts", people(), adjacency="replace-one", public_counts=GIVEN)


def test_the_certificate_says_what_public_numbers_leave_open(public):
    certificate = public.certificate
    text = str(certificate)
    about = "It is about: what one person's records say, within their time bins (replace-one)"
    assert about in text
    assert "NOT protected: whether one person is in the data, and in which time bins" in text
    assert "(add-remove) the same release has epsilon" not in text
    assert "finds a member" not in text
    assert "both in the same time bins" in text
    assert certificate.to_dict()["epsilon_other_adjacency"] is None
    certificate.verify()


@pytest.mark.usefixtures("without_refits")
def test_so_does_the_report(public, tmp_path):
    public.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "Not protected" in page
    assert "in which time bins" in page
    assert "records say, beyond their time bins, " in page
    assert "And about" not in page


@pytest.mark.parametrize(
    "forged", [{"adjacency": "add-remove"}, {"epsilon_other_adjacency": 1.0}], ids=str
)
def test_a_certificate_that_promises_membership_beside_public_numbers_is_refused(public, forged):
    values = {**public.certificate.to_dict(), **forged}
    with pytest.raises(InputError, match="promises what its public inputs give away"):
        pt.Certificate.from_dict(values).verify()


def test_the_command_line_takes_numbers(tmp_path, capsys):
    table = "t,x\n" + "".join(f"{k % 3},{k % 7}\n" for k in range(60))
    (tmp_path / "d.csv").write_text(table)
    words = ["fit", str(tmp_path / "d.csv"), "--time", "t", "--feature", "x", "0", "7"]
    words += ["--bin-times", "0", "1", "2", "--epsilon", "2", "--delta", "1e-5", "--cells", "3"]
    words += ["--out", str(tmp_path / "m.privtraj"), "--public-counts", "41", "17", "12"]
    assert cli.main(words) == 2
    assert "use --adjacency replace-one" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "m.privtraj").exists()
    assert cli.main([*words, "--adjacency", "replace-one"]) == 0
    certificate = pt.load(tmp_path / "m.privtraj").certificate
    assert certificate.public_inputs[PUBLIC_COUNTS] == GIVEN
