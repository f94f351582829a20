"""The record of a model: what is released, and the file that holds it.

A file is a zip of plain arrays and one JSON header, in which every part has its checksum:

    particles.npy, weights.npy, ...   one array each, without pickles
    model.json                        the fields of the model, the SHA-256 of every array, and the
                                      certificate, which carries the digest of the whole model
    model.sha256                      of model.json

It may come from anybody. It is read within the bounds of `read_zip` and `strict_json`, nothing in
it is evaluated, and what is not as it should be is answered by one sentence. `FIELDS` and `ARRAYS`
declare every part once: how it is written, how it is read, and what is said of a file where it is
not as it has to be. `contradiction` is for those who were given a model and ask whether its
certificate speaks of it.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privtraj.base.arrays import Floats
from privtraj.base.errors import InputError, is_number, is_whole
from privtraj.base.files import Hostile, atomic_path, read_zip, strict_json, write_zip
from privtraj.base.space import moment
from privtraj.columns import kinds
from privtraj.columns.conditions import NONE, Constraints
from privtraj.columns.kinds import LONGEST_NAME, Column, Number, of_tables, plain_numbers
from privtraj.domain.domain import Domain
from privtraj.measures.base import NOT_COUNTED
from privtraj.measures.persistence import PERSISTENCE, is_persistence
from privtraj.measures.registry import find
from privtraj.motion.diffusions import Brownian
from privtraj.motion.growth import Growth
from privtraj.motion.process import Reference, Scale
from privtraj.motion.reference import from_dict
from privtraj.motion.states import number_names
from privtraj.privacy.accounting import PARALLEL
from privtraj.privacy.certificate import BATCHES, DOMAIN, DRAWN_TIMES, PUBLIC_COUNTS, Certificate
from privtraj.recipe import LATER, MOST_PARTICLES, Recipe

FORMAT = 3  # of files

_WIDEST = 1e3  # of anything in shares of the box
_FARTHEST = 9e12  # seconds from 1970 that a date can be, in microseconds of 64 bits
_NUMBERS = ("expected_worth", "noise_over_bandwidth", "effective_temperature", "marginal_error")
_LISTS = ("people_per_time", "significant_share", "spread")

Values = dict[str, Any]  # fields of a record by name


@dataclass(frozen=True, eq=False)
class Record:
    """Private marginals that can be sampled as trajectories; made by `TrajectorySynthesizer.fit`.

    particles: (K, m, d) in the unit cube.  weights: (K, m), rows sum to 1.
    bandwidth: (K,) standard deviation of one person around a particle, in the unit cube.
    diffusivity: variance per time range and coordinate of the unit cube.
    numeric_times: (T,) times of interest.  bounds: (d, 2).
    cloud_size: particles per time in `marginals`.
    knots: (K,) times of the particles, by default the times of interest.
    curves: whether particle i of all knots is one curve, straight between them.
    reference: how people move, in data units; by default Brownian motion of that diffusivity.
    constraints: what is public about features.
    domain: where people can be at all; every path stays there.
    growth: how the number of people changes; None: everybody is there all the time.
    columns: d of them, what each coordinate of a particle means; by default numbers. A category's
        coordinate is in the cell of a level; flags at the end say which numbers are missing.
    counted: (W, 5 + cells) noisy counts that later ones are combined with: of each window when it
        begins and ends, its people, the variance of its noise, whether it stands for several, and
        the counts of its cells. Empty where there are none.
    past_people: (n, 1 + d) time and place of drawn people who stand for all that batches without
        counts have measured (`stream.batches.fitted`). Empty where there are none.
    settings: how it was made.  recipe: what was asked for, whole; None where no recipe made it, and
        in files of version 0.2.  diagnostics: released quantities that tell how well it went.
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
    knots: Floats = field(default_factory=lambda: np.empty(0))
    curves: bool = False
    reference: Reference = field(default_factory=Reference)
    constraints: Constraints = NONE
    domain: Domain | None = None
    growth: Growth | None = None
    columns: tuple[Column, ...] = ()
    recipe: Recipe | None = None
    counted: Floats = field(default_factory=NOT_COUNTED.view)
    past_people: Floats = field(default_factory=NOT_COUNTED.view)

    def __post_init__(self) -> None:
        if not self.columns:
            object.__setattr__(self, "columns", plain_numbers(self.features, self.bounds))
        object.__setattr__(self, "diagnostics", _without_nan(self.diagnostics))
        if len(self.knots) == 0:
            object.__setattr__(self, "knots", self.numeric_times)
        if type(self.reference) is Reference:
            object.__setattr__(self, "reference", Brownian(self.diffusivity))

    @property
    def scale(self) -> Scale:
        """The box and the range of time."""
        return scale_of(self.bounds, self.knots)


def scale_of(bounds: Floats, knots: Floats) -> Scale:
    """Of a box (d, 2) and times in order."""
    return Scale(bounds, float(knots[0]), float(knots[-1] - knots[0]))


def _without_nan(value: Any) -> Any:
    """None for what is not finite: no diagnostic may keep a paid-for model from disk."""
    if isinstance(value, dict):
        return dict(zip(value, map(_without_nan, value.values()), strict=True))
    if isinstance(value, list):
        return list(map(_without_nan, value))
    return None if isinstance(value, float) and not math.isfinite(value) else value


# How a file holds it ----------------------------------------------------------------------------

# of each array its field of the record, and its shape: names of dimensions, which are as long
# wherever they are, or lengths
ARRAYS: dict[str, tuple[str, tuple[str | int, ...]]] = {
    "particles": ("particles", ("K", "m", "d")),
    "weights": ("weights", ("K", "m")),
    "bandwidth": ("bandwidth", ("K",)),
    "times": ("numeric_times", ("T",)),
    "knots": ("knots", ("K",)),
    "bounds": ("bounds", ("d", 2)),
    "counted": ("counted", ("W", "C")),
    "past_people": ("past_people", ("P", "1 + d")),
}
OPTIONAL = {"counted.npy", "past_people.npy"}  # arrays that not every file has

_NPY = re.compile(  # as numpy.save writes it; its own reader evaluates what it finds here
    rb"\x93NUMPY\x01\x00..\{'descr': '([<>|][fiu][1248])', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,12},? ?){1,4})\), \} *\n",
    re.DOTALL,
)


class Fault(ValueError):
    """What is wrong with a file, in words."""


class Field(NamedTuple):
    """A field of a file's header.

    fault: what is said of a file in which it is not as it has to be.
    read: whether what a file says can be the field of the record, given those that were read before
    it; or the fields that it makes; any of `WRONG` for what no record has.
    write: what a file says of a record, if not its field; None for nothing, if `optional`.
    """

    fault: str
    read: Callable[[Any, Values], Any]
    write: Callable[[Record], Any] | None = None
    optional: bool = False


WRONG = (InputError, AttributeError, KeyError, TypeError, ValueError, OverflowError)


def packed(
    record: Record, certificate: Certificate | None = None
) -> tuple[Values, dict[str, bytes]]:
    """The header of a file, and its arrays as members; with another certificate, if it is given."""
    header: Values = {"format": FORMAT}
    for name, one in FIELDS.items():
        value = getattr(record, name) if one.write is None else one.write(record)
        if hasattr(value, "to_dict"):
            value = value.to_dict() if getattr(value, "can_be_written", True) else None
        if not (value is None and one.optional):
            header[name] = value
    members, header["sha256"] = {}, {}
    for name, (attribute, _) in ARRAYS.items():
        array, buffer = getattr(record, attribute), io.BytesIO()
        if array.size == 0:
            continue
        np.save(buffer, np.float32(array) if name == "particles" else array, allow_pickle=False)
        members[f"{name}.npy"] = data = buffer.getvalue()
        header["sha256"][f"{name}.npy"] = hashlib.sha256(data).hexdigest()
    header["certificate"] = (certificate or record.certificate).to_dict()
    return header, members


def write(record: Record, path: str | Path, *, force: bool) -> None:
    """Write a file, whole or not at all; the same content gives the same bytes."""
    header, members = packed(record)
    text = json.dumps(header, allow_nan=False).encode()  # in lines it takes ten times as long
    sealed = {"model.json": text, "model.sha256": hashlib.sha256(text).hexdigest().encode()}
    with atomic_path(path, force=force) as temporary:
        write_zip(temporary, {**members, **sealed})


def read(path: str | Path) -> Values:
    """All fields of the record in a file that is whole, with its certificate."""
    members = _read_members(Path(path))
    try:
        header = strict_json(members["model.json"])
        version = header["format"]
    except (KeyError, ValueError, TypeError):
        what = f"'{path}' is not a privtraj model"
        raise InputError(f"{what}: give a file that fit has written") from None
    if version != FORMAT or isinstance(version, bool):
        shown = version if isinstance(version, int) else "of another kind"
        raise InputError(
            f"'{path}' has model format {shown}, and this privtraj reads format {FORMAT}: "
            "install the version that wrote it"
        )
    stated = members.get("model.sha256", b"").decode(errors="replace")
    parts = header.get("sha256")
    digests = {**(parts if isinstance(parts, dict) else {}), "model.json": stated}
    for name, known in digests.items():
        if name not in members or hashlib.sha256(members[name]).hexdigest() != known:
            what = name if name in members else "a part that is not there"
            raise InputError(
                f"'{path}' was changed or damaged, as {what} does not match its checksum: do not "
                "trust it, and copy it again"
            )
    extra = set(members) - set(digests) - {"model.sha256"}
    if extra:
        raise InputError(
            f"'{path}' was changed, as it holds what no model has ({len(extra)} parts): do not "
            "trust it"
        )
    needed = {name for name, one in FIELDS.items() if not one.optional}
    optional = FIELDS.keys() - needed
    why = "a part is missing or unreadable"
    try:
        if header.keys() - optional != {"format", "sha256", "certificate", *needed}:
            raise Fault(why)
        values = values_of(header, arrays_of(members))
        return {**values, "certificate": Certificate.from_dict(header["certificate"])}
    except InputError as error:
        raise InputError(f"do not trust '{path}': ", *error.args) from None
    except (Fault, KeyError, ValueError, TypeError) as error:
        why = str(error) if isinstance(error, Fault) else why
        raise InputError(f"'{path}' is damaged, as {why}: copy it again") from None


def _read_members(path: Path) -> dict[str, bytes]:
    if not path.exists():
        raise InputError(f"there is no file '{path}': check the path")
    try:
        if not path.is_file():
            raise zipfile.BadZipFile("a folder, or a device that never ends")
        return read_zip(path)
    except Hostile as error:
        raise InputError(
            f"'{path}' is no file that privtraj has written, as {error}: do not trust it"
        ) from None
    except (zipfile.BadZipFile, OSError):
        raise InputError(
            f"'{path}' is not a privtraj model, or is damaged: give a file that fit has written, "
            "or copy it again"
        ) from None


def arrays_of(members: dict[str, bytes]) -> dict[str, NDArray[Any]]:
    """The arrays, if they are all there are and fit each other; a `ValueError` otherwise."""
    there = members.keys() - {"model.json", "model.sha256"}
    if there | OPTIONAL != {f"{name}.npy" for name in ARRAYS}:
        raise ValueError("other arrays")
    arrays: dict[str, NDArray[Any]] = {}
    lengths: dict[str | int, int] = {}
    for name, (_, dimensions) in ARRAYS.items():
        if f"{name}.npy" not in there:
            continue
        data = members[f"{name}.npy"]
        said = _NPY.match(data)
        if said is None or said.end() != 10 + int.from_bytes(data[8:10], "little"):
            raise ValueError("not an array of numbers")
        dtype = np.dtype(said[1].decode())
        shape = tuple(int(length) for length in said[3].split(b",") if length.strip())
        if math.prod(shape) * dtype.itemsize != len(data) - said.end():
            raise ValueError("another size than stated")
        for dimension, length in zip(dimensions, shape, strict=True):
            known = dimension if isinstance(dimension, int) else length
            if length == 0 or lengths.setdefault(dimension, known) != length:
                raise ValueError("lengths that do not fit")
        values = np.frombuffer(data, dtype, offset=said.end())
        arrays[name] = values.reshape(shape, order="F" if said[2] == b"True" else "C").copy("K")
    return arrays


def values_of(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Values:
    """All fields of a record but the certificate; a `Fault` if they are none."""
    known: Values = {
        attribute: arrays[name] for name, (attribute, _) in ARRAYS.items() if name in arrays
    }
    known["particles"] = particles = known["particles"].astype(np.float64)
    weights, bandwidth = known["weights"], known["bandwidth"]
    times, knots = known["numeric_times"], known["knots"]
    finite = all(np.isfinite(array).all() for array in known.values())
    _require(finite, "some of its numbers are not finite")
    off = np.abs(weights.sum(axis=1, dtype=np.float64) - 1).max()
    _require(weights.min() >= 0 and off <= 1e-3, "its weights are no shares of a whole")
    # the coupling of more, m x m, would fill the memory
    _require(particles.shape[1] <= 4 * MOST_PARTICLES, "it has too many particles")
    _require(np.abs(particles - 0.5).max() <= _WIDEST, "its particles are far outside the box")
    within = bandwidth.min() >= 0 and bandwidth.max() <= _WIDEST
    _require(within, "its bandwidth is no share of the box")
    rising = all((one[1:] > one[:-1]).all() for one in (times, knots))
    inside = knots[0] <= times[0] and times[-1] <= knots[-1]
    finite = math.isfinite(float(knots[-1]) - float(knots[0]))
    _require(rising and inside and finite, "its times are not in order, or have no particles")
    if "counted" in known:
        rows = known["counted"][:, :5].T
        fits = len(rows) == 5 and rows[2:].min() >= 0 and (rows[0] < rows[1]).all()
        _require(fits and np.abs(known["counted"]).max() < 1e15, "its counts cannot be read")
    if "past_people" in known:
        when, places = np.split(known["past_people"], [1], axis=1)
        fits = places.shape[1] == particles.shape[2] and np.abs(places - 0.5).max() <= _WIDEST
        fits = fits and knots[0] <= when.min() and when.max() <= knots[-1]
        _require(fits, "its people of the past cannot be read")
    for name, one in FIELDS.items():
        if name in header:
            try:
                made = one.read(header[name], known)
            except Fault:
                raise
            except WRONG:
                made = False
            _require(made, one.fault)
            known |= made if isinstance(made, dict) else {name: header[name]}
    return known


def _require(holds: Any, fault: str) -> None:
    if not holds:
        raise Fault(fault)


def _is_name(name: Any, _: Values | None = None) -> bool:
    return isinstance(name, str) and len(name) <= LONGEST_NAME


def _is_plain(value: Any) -> bool:
    """None, a number, or a list of such."""
    if isinstance(value, list):
        return all(one is None or (is_number(one) and abs(one) <= 1e300) for one in value)
    return _is_plain([value])


def _read_features(names: Any, known: Values) -> Values:
    bounds = known["bounds"]
    fits = isinstance(names, list | tuple) and len(names) == len(bounds)
    _require(fits, "it has other features than bounds")
    _require(all(map(_is_name, names)), "its names cannot be read")
    _require(len(set(names)) == len(names), "two of its features have one name")
    return {"features": tuple(names), "columns": plain_numbers(names, bounds)}


def _read_columns(rows: Any, known: Values) -> Values:
    """Columns agree with names and bounds, and those that others are made of stand behind all
    columns of a table."""
    columns = tuple(kinds.from_dict(row) for row in rows)
    same = tuple(one.name for one in columns) == known["features"]
    same &= np.array_equal([one.domain for one in columns], known["bounds"])
    _require(same, "it has other columns than features and bounds")
    flags = (more for column in of_tables(columns) for more in column.more)
    fault = "its flags of what is missing are not those of its numbers"
    _require(columns == (*of_tables(columns), *flags), fault)
    return {"columns": columns}


def _write_columns(record: Record) -> Any:
    """None where all are numbers of which nothing but the bounds is known."""
    for one in record.columns:
        if type(one) is not Number or one.missing or one.fixed:
            return list(map(kinds.to_dict, record.columns))
    return None


def _moving(known: Values) -> tuple[tuple[str, ...], Floats]:
    """Names and bounds (dm, 2) of the numbers that move."""
    names = number_names(known["columns"])
    return names, known["bounds"][[one.name in names for one in known["columns"]]]


def _read_domain(value: Any, known: Values) -> Values:
    domain, (names, box) = Domain.from_dict(value), _moving(known)
    domain.of_features(names).check_box(names, box)
    return {"domain": domain}


def _good_diagnostics(value: Any, known: Values) -> bool:
    if not isinstance(value, dict):
        return False
    numbers, lists = [value.get(name) for name in _NUMBERS], [value.get(name) for name in _LISTS]
    plain = _is_plain(numbers) and all(one is None or type(one) is list for one in lists)
    forgets = value.get("persistence")
    known_well = "persistence" not in value or is_persistence(forgets, len(known["bounds"]))
    return plain and all(map(_is_plain, lists)) and known_well


def _read_motion(value: Any, known: Values) -> Values:
    """The reference process, what is public about features, and how the population changes."""
    _require(len(value) == 4 and isinstance(value["curves"], bool), "its curves cannot be read")
    names, box = _moving(known)
    reference, scale = from_dict(value["reference"]), scale_of(box, known["knots"])
    if names:
        reference.within(scale)
    constraints = Constraints.declared(**value["constraints"])
    constraints.check(known["columns"])
    try:
        growth = Growth.from_dict(value["growth"])
        if growth is not None:
            growth.check(known["datetime"])
            growth.sizes(scale.start, scale.length, known["diagnostics"])
    except WRONG:
        raise Fault("its growth cannot be read") from None
    made = {"reference": reference, "constraints": constraints, "growth": growth}
    return {"curves": value["curves"], **made}


def _write_motion(record: Record) -> Any:
    plain = not record.curves and record.constraints == NONE and record.growth is None
    if plain and record.reference == Brownian(record.diffusivity):
        return None
    constraints = dict(vars(record.constraints))
    for later in LATER:
        if not constraints.get(later, True):
            del constraints[later]
    return {
        "curves": record.curves,
        "reference": record.reference.to_dict(),
        "constraints": constraints,
        "growth": None if record.growth is None else record.growth.to_dict(),
    }


# fmt: off
FIELDS: dict[str, Field] = {  # in the order in which they are read
    "diffusivity": Field("its diffusivity cannot be read",
        lambda value, _: is_number(value) and 0 <= value <= _WIDEST**2),
    "datetime": Field("its times are no dates, or no numbers", lambda value, known:
        isinstance(value, bool) and (not value or np.abs(known["knots"]).max() <= _FARTHEST)),
    "cloud_size": Field("its cloud size cannot be", lambda value, known:
        is_whole(value) and 1 <= value <= 16 * known["particles"].shape[1] + 4096),
    "features": Field("its bounds are none", _read_features),
    "time_name": Field("its names cannot be read", _is_name),
    "columns": Field("its columns cannot be read", _read_columns, _write_columns, True),
    "domain": Field("its domain cannot be used", _read_domain, optional=True),
    "recipe": Field("its recipe cannot be read",
        lambda value, _: {"recipe": Recipe.from_dict(value)}, optional=True),
    "settings": Field("its settings cannot be read", lambda value, _:
        isinstance(value, dict) and isinstance(value.get("measure", ""), str)),
    "diagnostics": Field("its diagnostics cannot be read", _good_diagnostics),
    "motion": Field("how its people move cannot be read", _read_motion, _write_motion, True),
}
# fmt: on


# What a certificate says of it ------------------------------------------------------------------


def contradiction(record: Record) -> str | None:
    """Where a model and what its certificate takes as public do not agree; None if they do.

    The times of the model are among the bin times, where these are public, and inside the public
    range; its columns and its domain are the public ones. Where a fit says how it measured, its
    ledger has no release that such a fit does not plan.
    """
    public, times, knots = record.certificate.public_inputs, record.numeric_times, record.knots
    declared = {column.name: column.public_inputs() for column in of_tables(record.columns)}
    if public.get("bounds") != declared:
        plain = _write_columns(record) is None
        return f"its {'bounds' if plain else 'columns'} are not the public ones"
    if public.get(DOMAIN) != (None if record.domain is None else record.domain.public_inputs()):
        return "its domain is not the public one"
    try:
        start, end = _moments(public["time range"], 2)
        listed = public.get(DRAWN_TIMES, public.get("bin times", times.tolist()))
        bins = _moments(listed, len(times))
    except (InputError, KeyError, TypeError, ValueError):
        return "its public times cannot be read"
    near = 1e-6 * (1 + end - start)
    if not (start - near <= knots[0] and knots[-1] <= end + near):
        return "its times are outside the public range"
    if np.abs(bins - times).max() > near:
        return "its times are not the public ones"
    promised = record.certificate.target_epsilon, record.certificate.delta
    adjacency, recipe = record.certificate.adjacency, record.recipe
    batches = public.get(BATCHES, [])  # each of which has paid for itself
    asked = recipe and (recipe.epsilon, recipe.delta, recipe.adjacency)
    if asked and asked != ((*asked[:2], adjacency) if batches else (*promised, adjacency)):
        return "its recipe has another guarantee"
    windows = record.settings.get("windows", record.settings.get("slabs", len(times)))
    if not (is_whole(windows) and 1 <= windows <= len(knots)):
        return "it has fewer times than windows"
    bin_times = public.get("bin times")
    lengths = {len(times), windows, len(bin_times) if isinstance(bin_times, list) else windows}
    for people in (record.diagnostics.get("people_per_time"), public.get(PUBLIC_COUNTS)):
        listed = isinstance(people, list) and _is_plain(people)
        if people is not None and not (listed and len(people) in lengths):
            return "its numbers of people are of other times"
    measure, steps = record.settings.get("measure"), record.settings.get("steps", 0)
    if (known := find(measure)) is not None:
        planned = known.most_releases(int(steps) if is_whole(steps) else 0)
        made: Counter[str] = Counter()
        ahead = list(record.certificate.ledger)
        while ahead:
            entry = ahead.pop()
            if entry["mechanism"] == PARALLEL:
                ahead += [one for branch in entry["branches"] for one in branch]
                continue
            name = entry["what"].partition(": ")[0]
            made[name] += entry["times"]
            weight = entry.get("weight", 0)  # of a person: as many numbers of each feature
            even = weight > 0 and weight % len(record.bounds) == 0
            whole = entry["what"] != PERSISTENCE or even
            if not (whole and made[name] <= planned.get(name, 0) * max(len(batches), 1)):
                return "its ledger holds what such a fit does not release"
    return None


def _moments(times: Any, count: int) -> Floats:
    """Public times as numbers; dates in seconds since 1970."""
    if not (isinstance(times, list) and len(times) == count):
        raise ValueError("not so many times")
    return np.array([moment(time)[0] for time in times])
