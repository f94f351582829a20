"""`python -m reproduce NAME --out DIR`: results in files and on stdout, progress on stderr."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from privtraj.base.errors import InputError, PrivtrajError, aligned
from reproduce.registry import NAMES, check_strokes, reproduce
from reproduce.result import Options


def main(argv: Sequence[str] | None = None) -> int:
    """Each name in turn; what is finished stays if a later one fails. The exit code."""
    args = _parser().parse_args(argv)
    names = list(NAMES) if args.name == "all" else [args.name]
    try:
        for name in names:
            check_strokes(name, args.strokes)
        if args.seeds < 1:
            raise InputError("--seeds must be at least 1")
        if args.out.exists() and any(args.out.iterdir()) and not args.force:
            raise InputError(
                f"the directory '{args.out}' is not empty: choose another with --out, or write"
                " into it with --force"
            )
        args.out.mkdir(parents=True, exist_ok=True)
        for name in names:
            began = time.monotonic()
            progress = _progress(name)
            result = reproduce(name, Options(args.strokes, args.seeds, args.quick, progress))
            files = result.write(args.out, force=True)
            print(result.text.rstrip(), end="\n\n")
            print(f"{name}: {time.monotonic() - began:.0f} s; written:")
            print(*(f"  {path}" for path in files), sep="\n", end="\n\n", flush=True)
    except PrivtrajError as error:
        print(f"reproduce: {error.typed()}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    about = "the paper's tables and figures again, with its settings and with ours"
    rows = [(name, entry.about) for name, entry in NAMES.items()]
    names = aligned([*rows, ("all", "everything, about 13 minutes on two cores")])
    parser = argparse.ArgumentParser(
        prog="python -m reproduce",
        description="\n  ".join([f"{about}\n\nnames:", *names]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("name", metavar="NAME", choices=[*NAMES, "all"], help="what to reproduce")
    strokes = "pen strokes of MNIST (E. de Jong): an .npz file or the folder of text files"
    add("--strokes", type=Path, metavar="FILE", help=strokes)
    add("--seeds", type=int, default=3, metavar="N", help="repetitions behind every mean (3)")
    quick = "smallest run of everything: shows that it works, its numbers mean nothing"
    add("--quick", action="store_true", help=quick)
    out = "where files are written (privtraj-paper)"
    add("--out", type=Path, default=Path("privtraj-paper"), metavar="DIR", help=out)
    add("--force", action="store_true", help="write into a directory that is not empty")
    return parser


def _progress(name: str) -> Callable[[int, int], None]:
    """Tells on stderr how many of the runs are done."""

    def tell(done: int, total: int) -> None:
        end = "\n" if done == total else ""
        print(f"\r{name}: {done} of {total}", end=end, file=sys.stderr, flush=True)

    return tell


if __name__ == "__main__":
    sys.exit(main())
