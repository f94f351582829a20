"""The figure of an audit: the verdict in the title, what was found inside what is allowed."""

import numpy as np
import pytest

from privtraj.audit.findings import Audit, compare
from privtraj.privacy.accounting import tally
from privtraj.privacy.events import GaussianSum
from privtraj.report.figures import audit_figure, save_figure


def _audit(true, claimed):
    draws = np.random.default_rng(0).standard_normal((2, 200)) + np.array([[0], [true]])
    claim = tally([GaussianSum(1 / claimed, "sum")], "add-remove")
    findings = [
        compare(*(draws - true / 2), claim, 1e-5, confidence, 0.0) for confidence in (0.98, 0.99)
    ]
    return Audit(claim, 1e-5, 0.95, "transcript", 400, tuple(findings), (), 0.01)


@pytest.mark.parametrize(("true", "said"), [(1.0, "no violation found"), (4.0, "VIOLATED")])
def test_the_figure_says_the_claim_and_the_verdict(true, said, tmp_path):
    figure = audit_figure(_audit(true, 1.0))
    title = figure.get_suptitle()
    assert said in title
    assert "1e-5" in title
    assert len(figure.axes) == 2
    save_figure(figure, tmp_path / "audit.png")
    assert (tmp_path / "audit.png").read_bytes().startswith(b"\x89PNG")


def test_the_bars_are_the_claim_and_the_bound_of_every_attack():
    audit = _audit(2.0, 3.0)
    axes = audit_figure(audit).axes[1]
    widths = [bar.get_width() for bar in axes.patches]
    assert widths == pytest.approx([audit.epsilon, *(one.bound for one in audit.findings)])
    marks = axes.collections[0].get_offsets()[:, 0]
    assert list(marks) == pytest.approx([one.could_see for one in audit.findings])


def test_the_curve_of_the_attack_goes_from_corner_to_corner():
    lines = audit_figure(_audit(1.0, 1.0)).axes[0].get_lines()
    curve = next(
        line for line in lines if line.get_label() == "the strongest attack, all thresholds"
    )
    x, y = curve.get_data()
    assert (x[0], y[0], x[-1], y[-1]) == (0, 0, 1, 1)
    assert (np.diff(x) >= 0).all()
    assert (np.diff(y) >= 0).all()
