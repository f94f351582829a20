"""Screenshots of the report for the documentation: light, dark and on a phone.

    python experiments/report_screenshots.py [--out docs/images]

Needs playwright and a Chromium on PATH. The models are fitted afresh, with private noise, so the
pictures differ a little each time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

import privtraj as pt
from privtraj import datasets

LARGEST = 400_000  # bytes


def growth() -> pt.TrajectoryModel:
    """The clinic of `privtraj demo`."""
    snapshots = pt.Snapshots.from_table(
        datasets.growth_clinic(6000),
        time="age",
        person="id",
        time_range=datasets.GROWTH_TIME_RANGE,
        bins=12,
        bounds=datasets.GROWTH_BOUNDS,
    )
    return pt.TrajectorySynthesizer(epsilon=1.0, delta=1e-5).fit(snapshots)


def commuters(n: int = 20000) -> pt.TrajectoryModel:
    """A simulated city from 5 to 11 in the morning: people leave three suburbs for the centre."""
    rng = np.random.default_rng(0)
    homes = np.array([[13.18, 52.56], [13.22, 52.43], [13.58, 52.46]])[rng.choice(3, n)]
    works = np.array([[13.39, 52.52], [13.45, 52.50]])[rng.choice(2, n)]
    hour = rng.uniform(5, 11, n)
    way = 1 / (1 + np.exp(-2.2 * (hour - 8)))[:, None]
    bend = np.column_stack([np.zeros(n), 0.05 * np.sin(np.pi * way[:, 0])])
    spread = rng.normal(0, [0.02, 0.012], (n, 2)) * (1.3 - 0.6 * way)
    when = np.datetime64("2024-03-04", "s") + (3600 * hour).astype("timedelta64[s]")
    snapshots = pt.Snapshots.from_arrays(
        when,
        homes + way * (works - homes) + bend + spread,
        bounds={"lon": (13.05, 13.75), "lat": (52.35, 52.65)},
        bins=13,
        time_range=("2024-03-04T05:00", "2024-03-04T11:00"),
    )
    return pt.TrajectorySynthesizer(epsilon=1.0, delta=1e-5).fit(snapshots)


def shoot(browser: Browser, page: Path, out: Path, theme: str, width: int, first: str, last: str):
    """From the top of one section to the top of another, in the middle of the time range."""
    scale = 2 if width < 500 else 1
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=theme, device_scale_factor=scale
    )
    tab = context.new_page()
    tab.goto(page.as_uri())
    tab.evaluate(
        "() => { const s = document.getElementById('time'); s.value = 480;"
        "s.dispatchEvent(new Event('input')); }"
    )
    tab.click("#paths")
    tab.evaluate("document.activeElement.blur()")
    where = "(e) => e.getBoundingClientRect().top + scrollY"
    top, bottom = (tab.locator(place).evaluate(where) for place in (first, last))
    clip = {"x": 0, "y": top, "width": width, "height": bottom - top}
    tab.screenshot(path=out, full_page=True, clip=clip)
    context.close()
    Image.open(out).convert("RGB").quantize(256).save(out, optimize=True)
    if out.stat().st_size > LARGEST:
        sys.exit(f"{out} is larger than {LARGEST} bytes")
    print(f"{out}: {out.stat().st_size // 1000} kB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    out = parser.parse_args().out
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("no Chromium on PATH: install one")
    quiet = ["--disable-gpu", "--disable-background-networking", "--no-first-run"]
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        clinic, city = Path(folder, "clinic.html"), Path(folder, "city.html")
        growth().report(clinic)
        commuters().report(city)
        browser = started.chromium.launch(executable_path=chromium, args=[*quiet, *root])
        shoot(browser, clinic, out / "report-light.png", "light", 1280, "header", "#features")
        shoot(browser, clinic, out / "report-people.png", "light", 1280, "#people", "#features")
        shoot(browser, city, out / "report-dark.png", "dark", 1280, "#people", "#draw")
        shoot(browser, clinic, out / "report-phone.png", "light", 390, "#people", "#features")
        browser.close()


if __name__ == "__main__":
    main()
