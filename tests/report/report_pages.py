"""Models to write reports about, made by hand so that they are the same in every run, and a page as
it is opened in a browser."""

import numpy as np

import privtraj as pt
from mixed_clinic import mixed_model
from privtraj.model.model import TrajectoryModel
from privtraj.privacy.certificate import certify
from privtraj.privacy.events import GaussianSum, LaplaceCounts
from privtraj.privacy.ledger import Ledger

NASTY = '</script><b>"x"&\''
LONG = "concentration of something with a very long name in the blood, yearly panel (mmol/l)"
MANY = [f"{k} {LONG}" for k in range(12)]
COAST = np.array([[-11.0, -7.0], [36.0, 42.0]])  # Lisbon, and water west of it


def made_model(
    features=("height", "weight"),
    times=5,
    *,
    private=True,
    measure="counts",
    adjacency="add-remove",
    dates=False,
    particles=24,
    time_name="age",
    epsilon=1.0,
    **more,
):
    """A model whose people drift from the lower left to the upper right of the box."""
    d, rng = len(features), np.random.default_rng(0)
    ledger = Ledger(epsilon, 1e-5, adjacency)
    ledger.spend(LaplaceCounts(0.02, "people per time"))
    if measure == "counts":
        ledger.spend(LaplaceCounts(0.4 * epsilon, "people per cell"))
    else:
        ledger.spend(GaussianSum(16.0, "clipped sums of a step"), times=8)
    knots = np.linspace(0.0, 20.0, times)
    if dates:
        knots = np.datetime64("2024-03-01", "s").astype(np.int64) + 86400.0 * np.arange(times)
    drift = np.linspace(0.35, 0.65, times)[:, None, None]
    unit = np.clip(drift + 0.08 * rng.standard_normal((times, particles, d)), 0.02, 0.98)
    diagnostics = {
        "people_per_time": [500.0 + 10 * k for k in range(times)],
    }
    if measure == "counts":
        diagnostics["significant_share"] = [0.9] * times
    else:
        diagnostics |= {
            "marginal_error": 0.03,
            "noise_over_bandwidth": 0.1,
            "effective_temperature": 1.5,
        }
    public = {"most records of one person": 1, "bounds": {name: [0, 100] for name in features}}
    return TrajectoryModel(
        particles=unit.astype(np.float32).astype(float),
        weights=np.full((times, particles), 1 / particles),
        bandwidth=np.full(times, 0.03),
        diffusivity=0.01,
        numeric_times=knots,
        bounds=more.pop("bounds", np.tile([0.0, 100.0], (d, 1))),
        features=tuple(features),
        time_name=time_name,
        datetime=dates,
        certificate=certify(ledger, public_inputs=public, private_noise=private),
        settings={"measure": measure, "particles": particles},
        diagnostics=diagnostics | more,
    ).sealed()


def letters_model():
    """A model without a number: 200 long and hostile values."""
    rng = np.random.default_rng(0)
    names = [f"{k:03}{NASTY}{'x' * 300}" for k in range(200)]
    columns = {
        f"code {NASTY}": pt.Category(names, other="any", missing=True),
        "sex": pt.Category(["F", NASTY], fixed=True),
    }
    code, sex = rng.integers(0, 202, (150, 5)), rng.integers(0, 2, (150, 1))
    values = np.stack([code, np.broadcast_to(sex, (150, 5))], axis=2).astype(float)
    return mixed_model(columns, values=values)


def clock_model():
    """A model of hours, all of whom pass midnight, and of a number."""
    start = np.random.default_rng(0).normal(21, 0.5, (60, 1))
    values = np.stack([start + np.linspace(0, 6, 5), np.full((60, 5), 0.5)], axis=2)
    return mixed_model({"hour": pt.Angle(24.0), "y": (0, 1)}, values=values)


MODELS = {
    "plain": made_model,
    "clock": clock_model,
    "seeded": lambda: made_model(
        [f"{k} {LONG}" for k in range(12)], measure="gradients", private=False
    ),
    "one": lambda: made_model((NASTY,), times=2, time_name='<i onload="x">'),
    "map": lambda: made_model(("lon", "lat"), bounds=COAST, dates=True),
    "plane": lambda: made_model(("x", "y"), bounds=COAST),
    "mixed": lambda: mixed_model(people=120),
    "letters": letters_model,
}


class Opened:
    """A page in the browser, and what it asked for and complained about."""

    def __init__(self, browser, file, width=1100, theme="light", **options):
        size = {"width": width, "height": 800}
        self.context = browser.new_context(viewport=size, color_scheme=theme, **options)
        self.page = self.context.new_page()
        self.asked, self.complaints = [], []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.url = file.as_uri()
        self.page.goto(self.url)

    def time(self):
        return float(self.page.get_attribute("#stage", "data-time"))

    def drawn(self):
        """The whole film: what stands still, and who moves."""
        return self.page.evaluate(
            "document.getElementById('scene').innerHTML"
            " + document.getElementById('stage').toDataURL()"
        )

    def slide(self, share):
        self.page.evaluate(
            "(v) => { const s = document.getElementById('time'); s.value = v;"
            "s.dispatchEvent(new Event('input')); }",
            round(1000 * share),
        )

    def text(self, place):
        return self.page.inner_text(place)
