"""The private boundary: the only code that reads people's records after they were validated.

`Guard` answers two questions, and each answer is recorded in the ledger before it is computed:

    counts   how many people are in each cell       + discrete Laplace noise on every cell
    sums     sum over people of clip_c( v(person) ) + discrete Gaussian noise on every coordinate

Nothing else leaves. Whatever is computed from the answers is post-processing.

Why the stated cost holds
    A person is one row: one time bin and one point of the unit cube. What is counted or summed for
    that row is a function of the row and of public or already released numbers alone.

    counts: the row is in exactly one cell of exactly one bin, so one person added or removed moves
    one integer by one, and one person replaced moves two. Counts are integers and so is the noise:
    no floating point is involved (`accounting.LaplaceCounts`).

    sums: v(row) is scaled to Euclidean norm at most c over *all* its coordinates jointly, divided
    by a lattice unit and rounded to integers. Rounding moves each of the D coordinates by at most
    1/2, so the integer vector of a row has norm at most
        B = c / unit + sqrt(D) / 2 + 1,
    the last 1 paying for float64 rounding on the way. The row touches the coordinates of its own
    bin only; integer sums are exact in any order. So the stacked sum over all bins moves by at most
    B when a person is added or removed, and by at most 2 B when one is replaced (sqrt(2) B if the
    two rows are in different bins). The noise has standard deviation S = z B on every integer: it
    is the Gaussian mechanism with noise multiplier z (`accounting.GaussianSum`), up to the
    total-variation slack of integer noise that is charged to the ledger per number drawn.

    The number of people in the data, in a bin or in a batch never enters an answer except through
    these two mechanisms. `public_counts=True` is the caller's statement that the number of people
    per bin is public knowledge; it is marked on the certificate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from privtraj.errors import BudgetError, InputError
from privtraj.privacy import noise
from privtraj.privacy.accounting import GaussianSum, LaplaceCounts
from privtraj.privacy.ledger import Ledger
from privtraj.snapshots import Snapshots

CHUNK = 256  # rows per chunk: memory grows with CHUNK * D, never with people * D
MAX_CELLS = 2**26  # noisy counts per release, over all bins

Statistic = Callable[[jax.Array, Any], jax.Array]
"""v: points (CHUNK, d) of one bin, parameters of that bin -> (CHUNK, D). A function of each row
alone: row k of the result may depend on row k of the points and on the parameters, nothing else."""


class Guard:
    """Holds the rows, answers with noise, and pays for every answer."""

    def __init__(
        self,
        snapshots: Snapshots,
        ledger: Ledger,
        source: noise.Source,
        *,
        public_counts: bool = False,
    ) -> None:
        self.ledger = ledger
        self.n_times = snapshots.n_times
        self.n_features = snapshots.n_features
        self._source = source
        self._public_counts = public_counts
        self._points = snapshots._points
        self._bins = snapshots._bins
        self._chunks: tuple[jax.Array, jax.Array, jax.Array] | None = None

    def counts(self, cells_per_side: int, epsilon: float, what: str) -> NDArray[np.int64]:
        """Noisy numbers of people (T, cells_per_side ** d); one cell per side counts the bins."""
        cells = cells_per_side**self.n_features
        if self.n_times * cells > MAX_CELLS:
            raise InputError(
                f"{cells_per_side} cells per side in {self.n_features} dimensions are too many to "
                "count: use fewer cells"
            )
        # A pure epsilon budget cannot carry any total variation; there the error of the sampler,
        # below 2^-111 a draw, is left to the statement that the random bits are ideal.
        drawn = self.n_times * cells
        slack = drawn * noise.laplace_tv_per_draw(epsilon) if self.ledger.delta > 0 else 0.0
        self.ledger.spend(LaplaceCounts(epsilon, what, slack))
        side = np.minimum((self._points * cells_per_side).astype(np.int64), cells_per_side - 1)
        place = self._bins.astype(np.int64)
        for axis in range(self.n_features):
            place = place * cells_per_side + side[:, axis]
        exact = np.bincount(place, minlength=self.n_times * cells).reshape(self.n_times, cells)
        return exact + noise.laplace_integers(self._source, exact.shape, epsilon)

    def declared_counts(self) -> NDArray[np.int64] | None:
        """People per bin (T,), exact, if the caller declared them public; else None."""
        if not self._public_counts:
            return None
        return np.bincount(self._bins, minlength=self.n_times)

    def sums(
        self,
        statistic: Statistic,
        parameters: Any,
        clip: NDArray[np.float64],
        noise_multiplier: float,
        what: str,
    ) -> NDArray[np.float64]:
        """Noisy sums (T, D) of jointly clipped per-person vectors.

        statistic: the per-person vector; a stable function, compiled once.
        parameters: pytree whose leaves have T as first axis; bin i is given its own slice.
        clip: (T,) bound c on the norm of a person's vector, from released numbers only.
        """
        width = _width(statistic, parameters, self.n_features)
        unit = lattice_unit(np.asarray(clip, dtype=np.float64), noise_multiplier, width)
        shape = (self.n_times, width)
        slack = math.prod(shape) * noise.GAUSSIAN_TV_PER_DRAW
        self.ledger.spend(GaussianSum(noise_multiplier, what, slack))
        with jax.enable_x64(True):
            exact = np.asarray(
                _lattice_sums(statistic, *self._chunked(), parameters, np.asarray(clip), unit)
            )
        return (exact + noise.gaussian_integers(self._source, shape)) * unit[:, None]

    def _chunked(self) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Rows as chunks of one bin each: points (n, CHUNK, d), rows used (n,), bin (n,)."""
        if self._chunks is None:
            points, used, bins = [], [], []
            edges = np.searchsorted(self._bins, np.arange(self.n_times + 1))
            for i in range(self.n_times):
                # an empty bin still gets a chunk, so shapes tell nothing apart from its size
                for start in range(edges[i], max(edges[i + 1], edges[i] + 1), CHUNK):
                    rows = self._points[start : min(start + CHUNK, edges[i + 1])]
                    points.append(np.pad(rows, ((0, CHUNK - len(rows)), (0, 0))))
                    used.append(len(rows))
                    bins.append(i)
            self._chunks = (jnp.asarray(np.stack(points)), jnp.asarray(used), jnp.asarray(bins))
        return self._chunks


def lattice_unit(
    clip: NDArray[np.float64], noise_multiplier: float, width: int
) -> NDArray[np.float64]:
    """unit = c / (S / z - sqrt(D) / 2 - 1), so that B = c / unit + sqrt(D) / 2 + 1 = S / z."""
    norm = noise.GAUSSIAN_STD / noise_multiplier - math.sqrt(width) / 2 - 1
    if norm < math.sqrt(width):
        raise BudgetError(
            f"a sum of {width} coordinates with noise multiplier {noise_multiplier:.3g} says "
            "nothing: use a larger epsilon, or fewer particles or steps"
        )
    unit: NDArray[np.float64] = clip / norm
    return unit


def clip_to_lattice(vectors: jax.Array, clip: jax.Array, unit: jax.Array) -> jax.Array:
    """Integer vectors (n, D) of min(1, c / |v|) v / unit, each row of norm at most B.

    A row that is not finite counts as zero: it could not be clipped.
    """
    wide = vectors.astype(jnp.float64)
    norm = jnp.linalg.norm(wide, axis=-1, keepdims=True)
    finite = jnp.isfinite(norm)
    scale = jnp.minimum(1.0, clip / jnp.where(finite & (norm > 0), norm, 1.0)) / unit
    return jnp.rint(jnp.where(finite, wide * scale, 0.0)).astype(jnp.int64)


@partial(jax.jit, static_argnums=0)
def _lattice_sums(
    statistic: Statistic,
    points: jax.Array,
    used: jax.Array,
    bins: jax.Array,
    parameters: Any,
    clip: jax.Array,
    unit: jax.Array,
) -> jax.Array:
    """Exact integer sums (T, D) over people, one chunk at a time."""

    def add_chunk(total: jax.Array, chunk: tuple[jax.Array, ...]) -> tuple[jax.Array, None]:
        rows, count, i = chunk
        vectors = statistic(rows, jax.tree.map(lambda leaf: leaf[i], parameters))
        lattice = clip_to_lattice(vectors, clip[i], unit[i])
        mine = jnp.where(jnp.arange(CHUNK)[:, None] < count, lattice, 0).sum(axis=0)
        return total.at[i].add(mine), None

    width = jax.eval_shape(
        statistic, points[0], jax.tree.map(lambda leaf: leaf[0], parameters)
    ).shape[-1]
    zero = jnp.zeros((clip.shape[0], width), jnp.int64)
    return jax.lax.scan(add_chunk, zero, (points, used, bins))[0]


def _width(statistic: Statistic, parameters: Any, n_features: int) -> int:
    row = jax.ShapeDtypeStruct((1, n_features), jnp.float32)
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), parameters)
    return int(jax.eval_shape(statistic, row, one).shape[-1])
