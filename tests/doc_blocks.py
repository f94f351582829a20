"""Blocks of code in pages of the documentation, and what happens to a reader who runs them.

As a program: reads pairs (language, code) as JSON, runs them, and writes what each block said.
"""

import contextlib
import io
import itertools
import json
import re
import shlex
import subprocess
import sys

BLOCK = re.compile(r"^( *)```+ *(\S*).*?\n(.*?)^\1```+ *$", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"privtraj( +([\w.,:=+/-]+|\"[\w ]+\"))* *(#.*)?$")  # words alone


def blocks(text):
    """Pairs (language, code) of the fenced blocks of a page."""
    return [
        (language, re.sub(f"^{indent}", "", code, flags=re.MULTILINE))
        for indent, language, code in BLOCK.findall(text)
    ]


def run(pairs, page):
    """What each block said, run one after the other in this folder; Python remembers its names."""
    names, said = {"__name__": "__main__"}, []
    for language, code in pairs:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            if language == "python":
                exec(compile(code, page, "exec"), names)
            else:
                _typed(code)
        said.append(out.getvalue())
    return said


def _typed(code):
    """Run what a reader types: commands of `privtraj` in this process, other lines in a shell.

    What a new process adds to a command, and costs, is tested in `tests/cli`.
    """
    from privtraj import cli

    lines = code.replace("\\\n", " ").splitlines()
    for is_command, some in itertools.groupby(lines, lambda line: bool(_COMMAND.match(line))):
        if not is_command:
            _in_shell("\n".join(some))
            continue
        for line in some:
            assert cli.main(shlex.split(line, comments=True)[1:]) == 0, line


def _in_shell(code):
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=3600,
    )
    print(done.stdout, end="")
    assert done.returncode == 0, f"{code}\n{done.stderr}"


if __name__ == "__main__":
    json.dump(run(json.load(sys.stdin), "the page"), sys.stdout)
