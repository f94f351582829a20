"""Every script of experiments/ and benchmarks/ asks the package for what it has.

They run in the other files here, which only `make test-all` runs.
"""

import ast
import importlib

import pytest
from script_runs import ROOT, run_alone

FOLDERS = (ROOT / "experiments", ROOT / "benchmarks")
SCRIPTS = sorted(path for folder in FOLDERS for path in folder.glob("*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_whatever_a_script_imports_is_there(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in (
            "privtraj",
            "reproduce",
        ):
            module = importlib.import_module(node.module)
            for name in (alias.name for alias in node.names):
                if not hasattr(module, name):
                    importlib.import_module(f"{node.module}.{name}")


def test_a_script_explains_itself():
    assert "--seeds" in run_alone("experiments/three_modes.py", "--help")
