"""The command line.

Results go to stdout, progress and notes to stderr; whatever a user can put right ends in one
sentence and exit code 2. Nothing beyond the standard library is imported before a command runs,
so that help answers at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from privtraj.base.errors import PrivtrajError
from privtraj.cli import console, demo, fit, prepare, results, trust, watch

COMMANDS = (
    demo.demo,
    *(prepare.init, prepare.plan, prepare.check, fit.fit, fit.extend, watch.watch),
    *(results.report, results.sample, results.ask, results.evaluate),
    *(trust.sign, trust.verify, trust.ledger, watch.people, trust.dossier, trust.audit),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    code, user = 0, console.Console(alone=argv is None)
    if user.alone:
        for backend in ("JAX", "PYTORCH", "TENSORFLOW", "CUPY"):  # which POT would load unused
            os.environ.setdefault(f"POT_BACKEND_DISABLE_{backend}", "1")
        sys.modules.setdefault("ot.datasets", ModuleType("ot.datasets"))  # it loads scipy.stats
        for library in ("OPENBLAS", "MKL"):  # matrices are small: threads would wait for each other
            os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    try:
        with console.notes(user):
            parser = full_parser()
            args = parser.parse_args(argv)
            if args.command is None:
                print(parser.format_help(), end="")  # argparse hides that a disk is full
            else:
                code = args.run(args, user)
            sys.stdout.flush()
    except PrivtrajError as error:
        return user.fail(error.typed())
    except MemoryError:
        return user.fail("there is not enough memory: ask for fewer paths or fewer times")
    except BrokenPipeError:  # whoever reads, such as head, has seen enough
        console.give_up_stdout_if_broken()
        return console.UNREAD
    except OSError as error:
        console.give_up_stdout_if_broken()
        reason = error.strerror or str(error) or type(error).__name__  # without Python's numbers
        where = f" ('{error.filename}')" if error.filename else ""
        return user.fail(f"the system refused: {reason}{where}")
    except KeyboardInterrupt as stop:
        said = "; ".join(["nothing is left half-written", *getattr(stop, "__notes__", [])])
        return user.fail(f"interrupted: {said}{user.remains}", console.INTERRUPTED)
    return code


def full_parser() -> argparse.ArgumentParser:
    """The parser of `privtraj` with all its commands."""
    return console.parser(*COMMANDS)
