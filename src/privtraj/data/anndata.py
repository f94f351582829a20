"""Columns of AnnData, in memory and in .h5ad files: of obs, coordinates of obsm, genes of var.

Names are scanpy's: a column of obs by its name, coordinate k of obsm["X_pca"] as "X_pca-k", a gene
by its name in var.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privtraj.base.errors import InputError, first_few, listed
from privtraj.base.formats import extra
from privtraj.data.arrow import dated, is_text, plain, read_object, to_column

if TYPE_CHECKING:
    import pyarrow as pa

COORDINATE = re.compile(r"([^/]+)-(\d+)")  # HDF5 takes a slash for a folder


def is_anndata(source: Any) -> bool:
    """Whether it is an AnnData object; whoever has one has imported anndata."""
    anndata = sys.modules.get("anndata")
    return anndata is not None and isinstance(source, anndata.AnnData)


def needed() -> Any:
    """The module anndata."""
    return extra("anndata", "AnnData and .h5ad files", "privtraj[anndata]")


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """The AnnData of a .h5ad file; its matrix stays there until columns of it are asked for."""
    with warnings.catch_warnings():  # its words are not ours, and may quote names of records
        warnings.simplefilter("ignore")
        data = needed().read_h5ad(path, backed="r")
        try:
            yield data
        finally:
            data.file.close()


def names(data: Any) -> list[str]:
    """Columns of obs and coordinates of obsm. Genes, which are many, are not listed."""
    tables = {key: values for key, values in data.obsm.items() if values.ndim == 2}
    coordinates = [f"{key}-{k}" for key, x in tables.items() for k in range(x.shape[1])]
    return [*map(str, data.obs.columns), *coordinates]


def table(data: Any, columns: Sequence[str], text: Sequence[str] = ()) -> pa.Table:
    """These columns, in their order; text that reads as dates becomes dates, but for `text`."""
    import pyarrow as pa

    _check(data, columns)
    near = set(names(data))
    parts = {name: _column(data, name, name in text) for name in columns if name in near}
    parts |= _genes(data, [name for name in columns if name not in near])
    return pa.table({name: parts[name] for name in columns})


def _check(data: Any, columns: Sequence[str]) -> None:
    known = names(data)
    for name in columns:
        places = known.count(name) + int((data.var_names == name).sum())
        if places > 1:
            raise InputError(
                f"obs, obsm and var have more than one column named '{name}': rename them"
            )
        if places == 0:
            raise InputError(
                f"there is no column '{name}' in obs or obsm and no gene of that name in var: obs "
                f"and obsm have {first_few(known) or 'no columns'}"
            )


def _column(data: Any, name: str, as_text: bool) -> pa.ChunkedArray:
    if name in data.obs.columns:
        column = read_object(data.obs, [name]).column(0)
        return column if as_text else _dated(column)
    key, _, k = name.rpartition("-")
    values = data.obsm[key]
    values = values.iloc if hasattr(values, "iloc") else values
    return to_column(_dense(values[:, [int(k)]])[:, 0], name)


def _genes(data: Any, genes: list[str]) -> dict[str, pa.ChunkedArray]:
    """All at once: a matrix on disk is read through for any of them."""
    if not genes:
        return {}
    try:
        empty = data.X is None
    except KeyError:  # a file without one
        empty = True
    if empty:
        raise InputError(
            f"there are no values of the genes {listed(genes)}, as X is empty: fill it in, "
            "or use columns of obs or obsm"
        )
    part = data[:, genes]
    values = _dense((part.to_memory() if data.isbacked else part).X)
    return {gene: to_column(values[:, k], gene) for k, gene in enumerate(genes)}


def _dense(values: Any) -> NDArray[Any]:
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values)


def _dated(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A .h5ad file has no dates: they are there as text, and often as categories."""
    words = plain(column)
    if not is_text(words.type) or words.null_count == len(words):
        return column
    read = dated(words)
    return column if read is None else read
