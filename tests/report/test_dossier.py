"""The dossier: its answers are the certificate's, nothing in it runs, and it prints."""

import re
from dataclasses import replace

import pytest
from report_pages import NASTY, made_model

from privtraj import cli
from privtraj.base.errors import InputError
from privtraj.privacy.certificate import DECLARED
from privtraj.privacy.ledger_file import LedgerFile
from privtraj.report.dossier import OTHERS, dossier


@pytest.fixture(scope="module")
def model():
    made = made_model()
    nasty = replace(made.certificate, declared=dict.fromkeys(DECLARED, NASTY))
    return replace(made, certificate=nasty)


def text_of(page):
    return " ".join(re.sub("<[^>]+>", " ", page.html()).split())


def test_the_three_questions_are_answered_by_the_numbers_of_the_certificate(model):
    said, certificate = text_of(dossier(model)), model.certificate
    for heading in ("Singling out", "Linkage", "Inference", "What is not promised"):
        assert heading in said
    right = 100 * (1 + certificate.attacker["advantage"]) / 2
    (shown,) = re.findall(r"is right in at most ([\d.]+)\s?% of cases", said)
    assert right <= float(shown) <= right + 0.1001
    (shown,) = re.findall(r"over guessing is at most ([\d.]+)", said)
    assert 0 <= float(shown.rstrip(".")) - certificate.attacker["advantage"] < 1e-3
    assert "No ledger was given" in said
    for other in OTHERS:
        assert re.search(r"\b20\d\d\b", other.source)


def test_nothing_that_was_declared_runs(model):
    html = dossier(model).html()
    assert NASTY not in html
    assert "<script>" + "</script>" in html  # there is none but an empty one
    assert "&lt;/script&gt;&lt;b&gt;" in html


def test_years_add_up_what_the_ledger_has(model, tmp_path):
    ledger = LedgerFile(tmp_path / "a.ledger", cap_epsilon=9, cap_delta=1e-3)
    entry = ledger.reserve(bytes(32), 1.0, 1e-5, "add-remove", "this one")
    with pytest.raises(InputError, match="does not know this model"):
        dossier(model, ledger.summary())
    ledger.settle(entry.id, spent_epsilon=0.8, model=model.sha256)
    ledger.charge(0.25, 0.0, "add-remove", "a histogram")
    summary = ledger.summary()
    summary["entries"][1]["time"] = "2031" + summary["entries"][1]["time"][4:]
    said = text_of(dossier(model, summary))
    assert re.search(r"2031 1 0\.25 0 all 2 1\.25 1e-05", said)


def test_the_command_verifies_first_and_writes_one_page(tmp_path, capsys):
    path, out = tmp_path / "m.privtraj", tmp_path / "dossier.html"
    made_model().save(path)
    assert cli.main(["dossier", str(path), "-o", str(out)]) == 2
    assert "do not trust" in capsys.readouterr().err  # it was made by hand
    assert not out.exists()


def test_it_opens_alone_and_prints_to_pdf(opened, model):
    shown = opened(dossier(model))
    assert shown.complaints == []
    assert shown.page.title().startswith("Privacy dossier: ")
    pdf = shown.page.pdf()
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page\n") in range(2, 8)
