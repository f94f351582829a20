"""The released model: private marginals, the certificate, and unlimited sampling.

A model holds nothing that was not paid for: particles, bandwidths, diffusivity, public settings,
diagnostics of released quantities, and the certificate. Everything it can do is post-processing.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from privtraj import display
from privtraj.arrays import Floats
from privtraj.clouds import along_main_axis, equal_weight
from privtraj.data.snapshots import Snapshots
from privtraj.errors import Arg, InputError
from privtraj.files import atomic_path
from privtraj.paths import Interpolation, Paths, between, fill_in_blocks
from privtraj.privacy.certificate import Certificate
from privtraj.space import as_user_times, fold, from_unit, moment, unit_time
from privtraj.transport.couplings import CouplingName, Couplings, couple

FORMAT = 2
MOST_PATHS = 10**9
_ARRAYS = ("particles", "weights", "bandwidth", "times", "bounds")


@dataclass(frozen=True, eq=False)
class TrajectoryModel:
    """Private marginals that can be sampled as trajectories; made by `TrajectorySynthesizer.fit`.

    particles: (T, m, d) in the unit cube.  weights: (T, m), rows sum to 1.
    bandwidth: (T,) standard deviation of one person around a particle, in the unit cube.
    diffusivity: variance per time range and coordinate of the unit cube.
    numeric_times: (T,).  bounds: (d, 2).  cloud_size: particles per time in `marginals`.
    settings: how it was made.  diagnostics: released quantities that tell how well it went.
    """

    particles: Floats
    weights: Floats
    bandwidth: Floats
    diffusivity: float
    numeric_times: Floats
    bounds: Floats
    features: tuple[str, ...]
    time_name: str
    datetime: bool
    certificate: Certificate
    cloud_size: int = 256
    settings: dict[str, Any] = field(default_factory=dict)
    diagnostics: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "diagnostics", _without_nan(self.diagnostics))

    @property
    def times(self) -> NDArray[Any]:
        """(T,) bin times in data units; datetime64 where the data had dates."""
        return as_user_times(self.numeric_times, self.datetime)

    @property
    def marginals(self) -> Floats:
        """(T, n, d) equal-weight particles in data units: heavy particles are repeated.

        They lack the observation noise of released people; `sample` adds it.
        """
        return from_unit(equal_weight(self.particles, self.weights, self.cloud_size), self.bounds)

    def sample(
        self,
        n: int,
        times: Any = None,
        *,
        seed: int | None = None,
        observation_noise: bool = True,
        interpolation: Interpolation = "bridge",
        coupling: CouplingName = "entropic",
    ) -> Paths:
        """n synthetic people at any times inside the range (default: the bin times).

        A path chains particles over the couplings, interpolates between bin times, and carries
        the person's own offset: observation noise of the model's bandwidth, one direction per
        person, so that a path is smooth while every marginal has its full width. Sampling costs no
        privacy.
        """
        _check_count(n)
        if interpolation not in get_args(Interpolation):
            raise InputError(
                f"interpolation must be 'bridge', 'linear' or 'spline', not '{interpolation}'"
            )
        at = self._query_times(times)
        rng = np.random.default_rng(seed)
        chain = self._couplings(coupling).walk(n, rng)
        rows = np.arange(self.particles.shape[0])
        knots = self.particles.astype(np.float32)[rows, chain]
        clock = unit_time(self.numeric_times, self.numeric_times)
        where = unit_time(at, self.numeric_times)
        width = np.interp(where, clock, self.bandwidth).astype(np.float32)
        bounds = np.tile(self.bounds, (len(at), 1))  # of all numbers of a path
        low, high = bounds.T
        values = np.empty((n, len(bounds)))

        def fill(people: slice, rng: np.random.Generator) -> None:
            part = between(knots[people], clock, where, self.diffusivity, interpolation, rng)
            if observation_noise:
                offset = rng.standard_normal(part[:, 0].shape, dtype=np.float32)
                part.swapaxes(0, 1)[:] += width[:, None, None] * offset
            unit = np.ascontiguousarray(fold(part)).reshape(len(part), -1)
            np.clip(from_unit(unit, bounds), low, high, out=values[people])

        fill_in_blocks(fill, n, len(bounds), rng)
        data = values.reshape(n, len(at), -1)
        return Paths(data, at, self.features, self.time_name, self.datetime)

    @property
    def sha256(self) -> str:
        """Of everything in the model, its certificate too, but for the place of this hash there."""
        certificate = replace(self.certificate, model_sha256=None).to_dict()
        whole = {**self._header(self._members()), "certificate": certificate}
        text = json.dumps(whole, sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def sealed(self) -> TrajectoryModel:
        """The model with its own hash on its certificate."""
        return replace(self, certificate=replace(self.certificate, model_sha256=self.sha256))

    def save(self, path: str | Path, *, force: bool = False, not_private: bool = False) -> None:
        """Write a zip of plain arrays and JSON, whole or not at all.

        not_private: needed for a model that is not, such as one fitted with a seed, as a file may
            get anywhere.
        """
        if not (self.certificate.private or not_private):
            raise InputError(
                f"this model is not private, as {self.certificate.caveat}: fit without seed to "
                "release one, or say ",
                Arg("not_private", True),
                " to write it all the same",
            )
        members = self._members()
        named = self if self.certificate.model_sha256 else self.sealed()
        header = {**self._header(members), "certificate": named.certificate.to_dict()}
        text = json.dumps(header, indent=1, allow_nan=False).encode()
        members["model.json"] = text
        members["model.sha256"] = hashlib.sha256(text).hexdigest().encode()
        with atomic_path(path, force=force) as temporary, zipfile.ZipFile(temporary, "w") as file:
            for name, data in members.items():
                file.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)

    def report(self, path: str | Path, *, force: bool = False) -> None:
        """Write one .html page to look at, whole or not at all; it may go where the model may."""
        display.write_page(self, path, force=force)

    def _header(self, members: dict[str, bytes]) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "diffusivity": self.diffusivity,
            "cloud_size": self.cloud_size,
            "features": list(self.features),
            "time_name": self.time_name,
            "datetime": self.datetime,
            "settings": self.settings,
            "diagnostics": self.diagnostics,
            "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in members.items()},
        }

    def _members(self) -> dict[str, bytes]:
        return {f"{name}.npy": _npy(array) for name, array in self._arrays().items()}

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "particles": self.particles.astype(np.float32),
            "weights": self.weights,
            "bandwidth": self.bandwidth,
            "times": self.numeric_times,
            "bounds": self.bounds,
        }

    def __repr__(self) -> str:
        t, m, d = self.particles.shape
        promise = f"epsilon {self.certificate.epsilon:.3g}, delta {self.certificate.delta:g}"
        if not self.certificate.private:
            promise = f"NOT PRIVATE: {self.certificate.caveat}"
        return f"TrajectoryModel({t} times, {m} particles, {d} features; {promise})"

    def _repr_html_(self) -> str:
        return display.card(self)

    def _couplings(self, coupling: CouplingName) -> Couplings:
        if coupling == "entropic":
            return self._entropic
        if coupling == "exact":
            return self._exact
        raise InputError(f"coupling must be 'entropic' or 'exact', not '{coupling}'")

    @cached_property
    def _entropic(self) -> Couplings:
        return self._couple("entropic")

    @cached_property
    def _exact(self) -> Couplings:
        return self._couple("exact")

    def _couple(self, coupling: CouplingName) -> Couplings:
        gaps = np.diff(unit_time(self.numeric_times, self.numeric_times))
        return couple(self.particles, self.weights, self.diffusivity * gaps, coupling)

    def _query_times(self, times: Any) -> Floats:
        if times is None:
            return self.numeric_times
        pairs = [moment(value, Arg("times")) for value in np.atleast_1d(np.asarray(times)).ravel()]
        if not pairs:
            raise InputError(Arg("times"), " is empty: give at least one time")
        if any(datetime != self.datetime for _, datetime in pairs):
            kind = "dates" if self.datetime else "numbers"
            raise InputError(Arg("times"), f" must be {kind}, as the model's times are")
        at = np.array([value for value, _ in pairs])
        first, last = self.numeric_times[[0, -1]]
        if at.min() < first or at.max() > last:
            raise InputError(
                Arg("times"),
                f" must lie between {self.times[0]} and {self.times[-1]}, the model's range",
            )
        return at


def diffusivity_or(given: float | None, resolution: Floats, gaps: Floats) -> float:
    """As given by hand; else people move as far over a mean gap as particles resolve, (T,)."""
    return float(np.mean(resolution**2) / np.mean(gaps)) if given is None else given


def assemble(
    snapshots: Snapshots,
    particles: Floats,
    weights: Floats,
    *,
    times: NDArray[np.int64] | None = None,
    **rest: Any,
) -> TrajectoryModel:
    """The sealed model of particles (T, m, d) at these snapshots' times, or at some of them.

    Particles are put in order along their main axis, by which paths are stratified.
    """
    order = along_main_axis(particles)
    return TrajectoryModel(
        particles=np.take_along_axis(particles, order[..., None], axis=1),
        weights=np.take_along_axis(weights, order, axis=1),
        numeric_times=snapshots.times if times is None else snapshots.times[times],
        bounds=snapshots.bounds,
        features=snapshots.features,
        time_name=snapshots.time_name,
        datetime=snapshots.datetime,
        **rest,
    ).sealed()


def load(path: str | Path) -> TrajectoryModel:
    """Read a model file; unknown versions and damaged files are refused."""
    members = _read_members(Path(path))
    try:
        header = json.loads(members["model.json"])
        version = header["format"]
    except (KeyError, ValueError, TypeError, RecursionError):
        raise InputError(
            f"'{path}' is not a privtraj model: give a file that fit has written"
        ) from None
    if version != FORMAT:
        raise InputError(
            f"'{path}' has model format {version}, and this privtraj reads format {FORMAT}: "
            "install the version that wrote it"
        )
    _check_digests(path, members, header)
    try:
        arrays = {
            name: np.load(io.BytesIO(members[f"{name}.npy"]), allow_pickle=False)
            for name in _ARRAYS
        }
        model = TrajectoryModel(
            particles=arrays["particles"].astype(np.float64),
            weights=arrays["weights"],
            bandwidth=arrays["bandwidth"],
            diffusivity=float(header["diffusivity"]),
            numeric_times=arrays["times"],
            bounds=arrays["bounds"],
            features=tuple(header["features"]),
            time_name=header["time_name"],
            datetime=bool(header["datetime"]),
            certificate=Certificate.from_dict(header["certificate"]),
            cloud_size=int(header["cloud_size"]),
            settings=header["settings"],
            diagnostics=header["diagnostics"],
        )
        digest = model.sha256
    except (KeyError, ValueError, TypeError):
        raise InputError(
            f"'{path}' is damaged, as a part is missing or unreadable: copy it again"
        ) from None
    if model.certificate.model_sha256 != digest:
        raise InputError(
            f"'{path}' was changed, as its certificate belongs to another model: do not trust it"
        )
    return model


def _read_members(path: Path) -> dict[str, bytes]:
    if not path.exists():
        raise InputError(f"there is no file '{path}': check the path")
    try:
        with zipfile.ZipFile(path) as file:
            return {name: file.read(name) for name in file.namelist()}
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError):
        raise InputError(
            f"'{path}' is not a privtraj model, or is cut short: give a file that fit has written, "
            "or copy it again"
        ) from None
    except Exception as error:  # zlib.error and friends: damaged contents
        if type(error).__module__ == "zlib":
            raise InputError(
                f"'{path}' is damaged, as its contents do not unpack: copy it again"
            ) from None
        raise


def _check_digests(path: str | Path, members: dict[str, bytes], header: dict[str, Any]) -> None:
    written = members.get("model.sha256", b"").decode(errors="replace")
    parts = header.get("sha256")
    digests = {**(parts if isinstance(parts, dict) else {}), "model.json": written}
    for name, digest in digests.items():
        if name not in members or hashlib.sha256(members[name]).hexdigest() != digest:
            raise InputError(
                f"'{path}' was changed or damaged, as {name} does not match its checksum: do not "
                "trust it, and copy it again"
            )
    extra = set(members) - set(digests) - {"model.sha256"}
    if extra:
        raise InputError(
            f"'{path}' was changed, as it holds what no model has ({len(extra)} parts): do not "
            "trust it"
        )


def _without_nan(value: Any) -> Any:
    """None for what is not finite: no diagnostic may keep a paid-for model from disk."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _npy(array: NDArray[Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _check_count(n: Any) -> None:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 1 <= n <= MOST_PATHS:
        raise InputError(f"the number of paths must be a whole number from 1 to {MOST_PATHS}")
