"""Pen strokes of handwritten digits, from files of the reader."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from privtraj.base.errors import InputError

_PIXELS = 28


def strokes(
    path: str | os.PathLike[str], digit: int, times: int = 10, *, split: str = "train"
) -> NDArray[np.float32]:
    """Pen paths (n, T, 2) of one digit, (x, y) in [0, 1]^2 with y up.

    path: an .npz file with arrays `d<digit>_T<times>` of shape (n, T, 2), or the directory of
    text files that Edwin de Jong publishes as "MNIST digits stroke sequence data":
    `trainimg-<k>-points.txt` with a header, one "column,row" per line counted from 1 and negative
    markers where the pen lifts or stops. The labels come from `trainlabels.txt`, or from the first
    ten columns of `trainimg-<k>-targetdata.txt`. T points are taken evenly by index and scaled by
        x = (column - 1/2) / 28,    y = 1 - (row - 1/2) / 28.
    split: "train" or "test" images of such a directory.
    """
    path = Path(path)
    if path.is_dir():
        return _strokes_from_directory(path, digit, times, split)
    if not path.is_file():
        raise InputError(f"there is no file or directory '{path}': check the path")
    try:
        file = np.load(path)
        names = list(file.files)
    except Exception:
        raise InputError(f"'{path}' cannot be read as an .npz file of strokes") from None
    with file:
        if f"d{digit}_T{times}" not in names:
            raise InputError(
                f"'{path}' has no strokes of digit {digit} at {times} times: it has "
                + (", ".join(sorted(n for n in names if "_T" in n)) or "no strokes at all")
            )
        return np.asarray(file[f"d{digit}_T{times}"], dtype=np.float32)


def _strokes_from_directory(path: Path, digit: int, times: int, split: str) -> NDArray[np.float32]:
    if times < 1:
        raise InputError(f"times is {times}: take at least one point of each stroke")
    files = {int(f.name.split("-")[1]): f for f in path.glob(f"{split}img-*-points.txt")}
    if not files:
        raise InputError(
            f"the directory '{path}' has no files {split}img-*-points.txt: give the directory "
            "that holds them"
        )
    listed = path / f"{split}labels.txt"
    try:
        if listed.is_file():
            known = np.loadtxt(listed, ndmin=1).astype(int)
            labels = {k: int(known[k]) for k in sorted(files)}
        else:
            targets = {k: path / f"{split}img-{k}-targetdata.txt" for k in sorted(files)}
            labels = {k: int(np.loadtxt(f, max_rows=1)[:10].argmax()) for k, f in targets.items()}
    except (OSError, ValueError, IndexError):
        raise InputError(
            f"the directory '{path}' does not say which digits its images show: it needs a "
            f"complete {listed.name}, or {split}img-*-targetdata.txt for every image"
        ) from None
    if digit not in labels.values():
        raise InputError(
            f"the directory '{path}' has no strokes of digit {digit}: it has digits "
            + ", ".join(str(label) for label in sorted(set(labels.values())))
        )
    paths = []
    for file in (files[k] for k, label in labels.items() if label == digit):
        try:
            cells = np.loadtxt(file, delimiter=",", skiprows=1, ndmin=2)
            column, row = cells[(cells >= 0).all(axis=1)].T
            at = np.rint(np.linspace(0, len(row) - 1, times)).astype(int)
            paths.append(((column[at] - 0.5) / _PIXELS, 1 - (row[at] - 0.5) / _PIXELS))
        except (ValueError, IndexError):
            raise InputError(f"'{file}' has no pen points: it needs lines of column,row") from None
    return np.stack(paths).swapaxes(1, 2).astype(np.float32)
