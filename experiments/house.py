"""The size of the code beside its bars: python experiments/house.py [--walk]

Bars are those that the third rebuilding set itself. --walk also runs a default fit of two numbers
and counts the files and functions that it passes. Exit code 1 if a bar is exceeded.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "privtraj"
ASSETS = (".js", ".css", ".html", ".toml", ".pyi")

WALK = """
import sys, numpy as np, privtraj as pt
rng = np.random.default_rng(0)
people = pt.Snapshots.from_arrays(
    rng.random(2000), rng.random((2000, 2)), bounds=[(0, 1)] * 2, time_range=(0, 1))
files, functions = set(), set()
def passed(frame, event, _):
    code = frame.f_code
    if event == "call" and "privtraj" in code.co_filename:
        files.add(code.co_filename)
        functions.add((code.co_filename, code.co_qualname))
synthesizer = pt.TrajectorySynthesizer(epsilon=1.0, delta=1e-5, seed=0)
sys.setprofile(passed)
synthesizer.fit(people)
sys.setprofile(None)
print(len(files), len(functions))
"""


def count_lines(paths):
    return sum(len(path.read_text("utf-8").splitlines()) for path in paths)


def wide_functions(trees):
    """Private functions with more than seven parameters."""
    wide = 0
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and re.match(r"_[^_]", node.name):
                arguments = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
                wide += sum(each.arg not in ("self", "cls") for each in arguments) > 7
    return wide


def walk():
    command = [sys.executable, "-W", "ignore", "-c", WALK]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [int(number) for number in done.stdout.split()]


def main():
    python = sorted(SOURCE.rglob("*.py"))
    assets = [path for path in SOURCE.rglob("*") if path.suffix in ASSETS]
    text = "\n".join(path.read_text("utf-8") for path in python)
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    trees = [ast.parse(path.read_text("utf-8")) for path in python]
    rows = [
        ("lines below src/, page assets included", count_lines(python + assets), 33_000),
        ("Python files", len(python), 150),
        ("rooms", len({path.relative_to(SOURCE).parts[0] for path in python}), 25),
        ("private functions with more than 7 parameters", wide_functions(trees), 0),
        (
            "words of README and docs",
            sum(len(path.read_text("utf-8").split()) for path in pages),
            35_000,
        ),
        ("objects named in strings", len(re.findall(r'"[a-z_.]+:[A-Za-z_]+"', text)), 5),
    ]
    if "--walk" in sys.argv:
        files, functions = walk()
        rows.append(("files that a default fit passes", files, 25))
        rows.append(("functions that it passes", functions, 200))
    for what, now, bar in rows:
        print(f"{what:48s} {now:7,d}   bar {bar:7,d}   {'ok' if now <= bar else 'above'}")
    print(f"and {count_lines((ROOT / 'tests').rglob('*.py')):,} lines of tests")
    return any(now > bar for _, now, bar in rows)


if __name__ == "__main__":
    sys.exit(main())
