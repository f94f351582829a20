"""Model and certificate files that mean harm, each made from a good one; all must be refused.

Those who made them know the format: but for plain damage, every checksum is right again, the name
that the certificate gives the model too.
"""

import copy
import hashlib
import io
import json
import struct
import warnings
import zipfile
import zlib

import numpy as np

from privtraj.model.model import TrajectoryModel
from privtraj.privacy.certificate import certify
from privtraj.privacy.events import LaplaceCounts
from privtraj.privacy.ledger import Ledger

T, M, D = 4, 24, 2
TIMES = np.array([0.0, 1.0, 2.0, 5.0])
BOUNDS = {"left": [-10.0, 10.0], "right": [100.0, 300.0]}


def good_model():
    """A model that passes every check, without a fit."""
    ledger = Ledger(1.0, 1e-5)
    for epsilon, what in [(0.05, "people per time"), (0.6, "people per cell")]:
        ledger.spend(LaplaceCounts(epsilon, what, 1e-12))
    public = {
        "bounds": BOUNDS,
        "time range": ["0.0", "5.0"],
        "most records of one person": 1,
        "bin times": [str(t) for t in TIMES],
    }
    rng = np.random.default_rng(0)
    return TrajectoryModel(
        particles=rng.uniform(size=(T, M, D)),
        weights=rng.dirichlet(np.full(M, 5.0), size=T),
        bandwidth=np.full(T, 0.03),
        diffusivity=0.002,
        numeric_times=TIMES,
        bounds=np.array(list(BOUNDS.values())),
        features=tuple(BOUNDS),
        time_name="age",
        datetime=False,
        certificate=certify(ledger, public_inputs=public, private_noise=True),
        cloud_size=64,
        settings={"measure": "counts", "particles": M, "steps": 0, "windows": T},
        diagnostics={"people_per_time": [9.0] * T, "expected_worth": 30.0},
    ).sealed()


def unpacked(path):
    """The header and the other members of a file."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    header = json.loads(members.pop("model.json"))
    del members["model.sha256"]
    return header, members


# Zips -----------------------------------------------------------------------------------------


def zipped(members, method=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", method) as archive:
        warnings.simplefilter("ignore")  # about a name that is there twice
        for name, data in members:
            archive.writestr(name, data)
    return file.getvalue()


def sealed(header, members, text=None):
    """The bytes of a file whose every checksum is right."""
    header = copy.deepcopy(header)
    if isinstance(header.get("sha256"), dict):
        digests = {name: hashlib.sha256(data).hexdigest() for name, data in members.items()}
        header["sha256"] = digests
    certificate = header.get("certificate")
    if isinstance(certificate, dict) and "model_sha256" in certificate:
        unsigned = {k: v for k, v in certificate.items() if k != "signature"}
        named = {**header, "certificate": {**unsigned, "model_sha256": None}}
        whole = json.dumps(named, sort_keys=True).encode()
        certificate["model_sha256"] = hashlib.sha256(whole).hexdigest()
    text = json.dumps(header).encode() if text is None else text(json.dumps(header)).encode()
    seal = hashlib.sha256(text).hexdigest().encode()
    return zipped([*members.items(), ("model.json", text), ("model.sha256", seal)])


def bomb(name, megabytes, stated=None):
    """A zip of one member of zeros; stated: the size that it claims, if not its own."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)  # may stand repeatedly
    data = block * megabytes + packer.flush()
    size = megabytes * 2**20 if stated is None else stated
    sizes = struct.pack("<3L2H", 0, len(data), size, len(name), 0)
    local = b"PK\3\4" + struct.pack("<5H", 20, 0, 8, 0, 33) + sizes + name.encode() + data
    line = b"PK\1\2" + struct.pack("<6H", 20, 20, 0, 8, 0, 33) + sizes
    line += struct.pack("<3H2L", 0, 0, 0, 0, 0) + name.encode()
    end = struct.pack("<4H2LH", 0, 0, 1, 1, len(line), len(local), 0)
    return local + line + b"PK\5\6" + end


def damaged(data):
    """Cut short, one bit turned in what is packed, or something put behind."""
    rng = np.random.default_rng(1)
    for cut in np.linspace(0, len(data) - 1, 16).astype(int):
        yield f"cut to {cut} bytes", data[:cut]
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        infos = file.infolist()
    for info in infos:
        begin = info.header_offset + 30 + len(info.filename)
        for at in rng.integers(begin, begin + info.compress_size, size=3):
            turned = bytearray(data)
            turned[at] ^= 1 << int(rng.integers(8))
            yield f"a bit turned at {at} in {info.filename}", bytes(turned)
    yield "something behind", data + b"more"
    yield "zeros", bytes(1000)
    yield "another kind of file", b"\x7fELF" + bytes(1000)


def zips(header, members):
    """The right content in a zip that is not, and bombs."""
    whole = sealed(header, members)
    with zipfile.ZipFile(io.BytesIO(whole)) as file:
        parts = [(name, file.read(name)) for name in file.namelist()]
    for name in ("weights.npy", "model.json"):
        yield f"{name} twice", zipped([*parts, (name, dict(parts)[name])])
    for name in ("../weights.npy", "/etc/passwd", "C:\\weights.npy", "more/", "more.npy", "a\0b"):
        yield f"a part more, named {name!r}", zipped([*parts, (name, b"")])
    yield "packed by bzip2", zipped(parts, zipfile.ZIP_BZIP2)
    yield "packed by lzma", zipped(parts, zipfile.ZIP_LZMA)
    yield "too many parts", zipped([*parts, *((f"{k}.npy", b"") for k in range(2000))])
    link = zipfile.ZipInfo("weights.npy")
    link.external_attr = 0o120777 << 16
    linked = [(link if name == "weights.npy" else name, data) for name, data in parts]
    yield "a link", zipped(linked)
    locked = bytearray(whole)
    locked[6] |= 1
    locked[whole.index(b"PK\1\2") + 8] |= 1
    yield "encrypted", bytes(locked)
    for name in ("model.json", "weights.npy", "particles.npy"):
        yield f"a bomb of 4 GB in {name}", bomb(name, 4000)
        yield f"a bomb in {name} that says it is small", bomb(name, 4000, stated=1000)
        yield f"a bomb in {name} that says it is empty", bomb(name, 4000, stated=0)
    yield "a bomb that says it is as large as can be", bomb("model.json", 10, stated=2**32 - 2)
    big = {name: bytes(2**25) if name == "weights.npy" else data for name, data in parts}
    yield "zeros for weights", zipped(big.items())


# JSON -----------------------------------------------------------------------------------------

TEXTS = {
    "a key twice": lambda text: text.replace('"age"', '"year", "time_name": "age"'),
    "not a number": lambda text: text.replace("0.002", "NaN"),
    "endless": lambda text: text.replace("0.002", "Infinity"),
    "beyond floats": lambda text: text.replace("0.002", "1e999"),
    "a thousand digits": lambda text: text.replace("0.002", "1" * 1000),
    "a million digits": lambda text: text.replace("0.002", "1" * 10**6),
    "deep": lambda text: text.replace("0.002", "[" * 100 + "]" * 100),
    "deeper": lambda text: text.replace("0.002", "[" * 5000 + "]" * 5000),
    "very deep": lambda text: "[" * 10**6,
    "deep in diagnostics": lambda text: text.replace("30.0", '{"a":' * 900 + "1" + "}" * 900),
    "a long text": lambda text: text.replace('"age"', f'"{"a" * 10**6}"'),
    "a long key": lambda text: text.replace('"windows"', f'"{"a" * 10**6}"'),
    "large": lambda text: text.replace("0.002", " " * 10**7),
    "a million values": lambda text: text.replace("30.0", f"[{'0,' * 10**6}0]"),
    "a million lists": lambda text: text.replace("30.0", f"[{'[],' * 10**6}0]"),
    "half of it": lambda text: text[: len(text) // 2],
    "nothing": lambda text: "",
    "a list": lambda text: "[1, 2]",
    "a number": lambda text: "3",
    "null": lambda text: "null",
    "a mark in front": lambda text: "\ufeff" + text,
    "other quotes": lambda text: text.replace('"', "'"),
}


# Fields ---------------------------------------------------------------------------------------

NO_NUMBERS = (None, "x", [1], {}, True)
FIELDS = {
    "format": (0, 2, 4, 10**18, -3, "3", None, True, [3], 3.5),
    "diffusivity": (*NO_NUMBERS, -1, 1e300),
    "cloud_size": (*NO_NUMBERS, 0, -1, 1.5, 10**12),
    "features": (None, 5, [], ["left"], ["left", "left"], [1, 2], ["x" * 5000, "b"], "ab"),
    "time_name": (None, 5, ["age"], "x" * 5000),
    "datetime": (None, 1, "yes", []),
    "settings": (None, [], "x", 5, {"measure": 5}, {"measure": ["counts"]}),
    "diagnostics": (
        None,
        [],
        {"expected_worth": "many"},
        {"expected_worth": [1]},
        {"people_per_time": 5},
        {"people_per_time": ["a"]},
        {"marginal_error": {}},
    ),
    "sha256": (None, 5, []),
    "certificate": (None, 5, [], {}),
    "note": ("one field more",),
}


def fields(header, members):
    for name, values in FIELDS.items():
        for value in values:
            yield f"{name} is {str(value)[:40]!r}", sealed({**header, name: value}, members)
    for name in header:
        yield f"no {name}", sealed({k: v for k, v in header.items() if k != name}, members)


# Arrays ---------------------------------------------------------------------------------------


def npy(array, **how):
    file = io.BytesIO()
    np.save(file, array, **how)
    return file.getvalue()


def stated(text, data=b""):
    """An array with this header."""
    text = text.encode() + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + data


def put(place, value):
    def change(array):
        array[place] = value
        return array

    return change


CHANGED = {
    "particles": {
        "far away": lambda x: x * 1e9,
        "flat": lambda x: x[0],
        "one time less": lambda x: x[1:],
        "one particle less": lambda x: x[:, 1:],
        "one feature less": lambda x: x[..., 1:],
        "transposed": lambda x: np.swapaxes(x, 0, 1).copy(),
        "in five dimensions": lambda x: x[None, None],
    },
    "weights": {
        "negative": put((0, 0), -0.1),
        "zero": lambda w: 0 * w,
        "twice": lambda w: 2 * w,
        "tiny": lambda w: w * 1e-300,
        "of one time": lambda w: w[:1],
        "transposed": lambda w: w.T.copy(),
    },
    "bandwidth": {"negative": put(1, -1.0), "huge": put(1, 1e9), "one less": lambda b: b[1:]},
    "times": {
        "backwards": lambda t: t[::-1].copy(),
        "other than the knots": lambda t: t + 0.5,
        "twice": lambda t: np.repeat(t, 2),
    },
    "knots": {
        "backwards": lambda t: t[::-1].copy(),
        "all one": lambda t: 0 * t,
        "one less": lambda t: t[:-1],
    },
    "bounds": {
        "reversed": lambda b: b[:, ::-1].copy(),
        "equal": lambda b: 0 * b,
        "wide": lambda b: b * 1e307,
        "three": lambda b: np.column_stack([b, b[:, 1]]),
    },
}
HEADERS = {
    "larger than it is": "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 24000000000), }",
    "endless": f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({'9' * 60},), }}",
    "negative": "{'descr': '<f8', 'fortran_order': False, 'shape': (-4, -24), }",
    "of objects": "{'descr': '|O', 'fortran_order': False, 'shape': (4, 24), }",
    "of itself": "{'descr': [('a', '<f8', (9, 9))], 'fortran_order': False, 'shape': (4,), }",
    "a call": "__import__('os').system('true')",
    "deep": "(" * 3000,
    "not closed": "{'descr': '<f8', 'shape': (4,",
    "in another order": "{'shape': (4, 24), 'fortran_order': False, 'descr': '<f8', }",
}
KINDS = {
    "of words": lambda a: a.astype("U8"),
    "of bytes": lambda a: a.astype("S8"),
    "of truths": lambda a: a > 0,
    "complex": lambda a: a.astype(np.complex128),
    "of dates": lambda a: np.zeros(a.shape, "datetime64[s]"),
    "of pairs": lambda a: np.zeros(a.shape, [("a", "<f8"), ("b", "<f8")]),
}


def arrays(header, members):
    def changed(name, data):
        return sealed(header, {**members, f"{name}.npy": data})

    for name, changes in CHANGED.items():
        array = np.load(io.BytesIO(members[f"{name}.npy"]))
        for said, value in (("nan", np.nan), ("inf", np.inf), ("-inf", -np.inf)):
            yield f"{said} in {name}", changed(name, npy(put((-1,) * array.ndim, value)(+array)))
        for said, change in changes.items():
            with np.errstate(over="ignore"):
                yield f"{name} {said}", changed(name, npy(change(+array)))
        yield f"no {name}", sealed(header, {k: v for k, v in members.items() if k != f"{name}.npy"})
    many = 100_000
    crowd = {"particles.npy": npy(np.zeros((T, many, D), np.float32))}
    crowd["weights.npy"] = npy(np.full((T, many), 1 / many))
    yield "particles without end", sealed(header, {**members, **crowd})
    weights = np.load(io.BytesIO(members["weights.npy"]))
    for said, text in HEADERS.items():
        yield f"weights stated {said}", changed("weights", stated(text, weights.tobytes()))
    for said, kind in KINDS.items():
        yield f"weights {said}", changed("weights", npy(kind(weights)))
    pickled = npy(np.array([{"a": 1}], dtype=object), allow_pickle=True)
    yield "a pickle", changed("weights", pickled)
    yield "bytes behind an array", changed("weights", members["weights.npy"] + bytes(8))
    yield "an array cut short", changed("weights", members["weights.npy"][:-8])


# Certificates ---------------------------------------------------------------------------------


def entry(**changes):
    """The first entry, otherwise."""
    return lambda c: c["ledger"][0].update(changes)


def ledger(*made):
    """Other entries, under a mechanism that is theirs."""

    def change(certificate):
        kinds = dict.fromkeys(each["mechanism"] for each in made)
        certificate.update(ledger=list(made), mechanism=" and ".join(kinds))

    return change


def laplace(times, epsilon=0.1, **rest):
    line = {"what": "people per time", "times": times, "mechanism": "discrete Laplace"}
    line |= {"noise_epsilon": epsilon, "records": 1, "together": False, "epsilon": times * epsilon}
    return line | rest


def gaussian(times, z=8.0, mechanism="Gaussian", **rest):
    line = {"what": "clipped sums of a step", "times": times, "mechanism": mechanism}
    return line | {"noise_multiplier": z, "records": 1, "together": False, "mu": 0.1} | rest


def sampled(times, z=2.0, rate=0.1, **rest):
    made = gaussian(times, z, "sampled Gaussian", rate=rate, **rest)
    del made["mu"]
    return made


def chosen(steps, **rest):
    return sampled(1, steps=steps, share=0.5, **rest) | {"mechanism": "Gaussian on chosen times"}


def states(name, value):
    return lambda c: c.update({name: value})


def public(**changes):
    return lambda c: c["public_inputs"].update(changes)


def settings(**changes):
    return lambda c, header: header["settings"].update(changes)


ESCAPE = "quiet\n  Guarantee: differential privacy with epsilon = 0.01\x1b[2K"
STATEMENTS = {
    # work without end
    "20,000 counts": entry(times=20_000),
    "20,000 counts of each": ledger(*(laplace(20_000, e / 1e4) for e in range(1, 9))),
    "4,000 counts of each": ledger(*(laplace(4000, e / 1e4) for e in range(1, 9))),
    "a billion counts": entry(times=10**9),
    "counts without end": entry(times=10**19),
    "1,000 kinds of counts": ledger(*(laplace(1, e / 1e6) for e in range(1000, 2000))),
    "30,000 entries": ledger(*[laplace(1)] * 30_000),
    "a million records": entry(records=10**6),
    "a billion steps": ledger(gaussian(10**9)),
    "20,000 loud sampled steps": ledger(sampled(20_000, z=0.5)),
    "a billion sampled steps": ledger(sampled(10**9)),
    "sampled steps without noise": ledger(sampled(1, z=1e-6)),
    "sampled steps of next to no noise": ledger(sampled(1, z=1e-300)),
    "sampled steps of a million records": ledger(sampled(1, records=10**6, together=True, z=1e9)),
    "sampled records apart": ledger(sampled(100, records=10**7)),
    "chosen times without end": ledger(chosen(10**9)),
    "sampled steps beside loud counts": ledger(sampled(1), laplace(3000, 1.0)),
    "sampled steps beside loud sums": ledger(sampled(1), gaussian(1, z=1e-3), laplace(2000)),
    # numbers that cannot be
    "no counts": entry(times=0),
    "counts less than none": entry(times=-1),
    "half a count": entry(times=1.5),
    "counts if true": entry(times=True),
    "counts in words": entry(times="many"),
    "no epsilon": entry(noise_epsilon=0.0),
    "epsilon of next to nothing": entry(noise_epsilon=1e-320),
    "a huge epsilon": entry(noise_epsilon=1e308),
    "no noise": ledger(gaussian(1, z=1e-300)),
    "endless noise": ledger(gaussian(1, z=1e308)),
    "no rate": ledger(sampled(1, rate=0.0)),
    "a rate in words": ledger(sampled(1, rate="half")),
    "records in words": entry(records="one"),
    "together, perhaps": entry(together="yes"),
    "an unknown mechanism": entry(mechanism="magic"),
    "a mechanism that is a list": entry(mechanism=[]),
    "an entry without a name": entry(what=None),
    "an entry that is none": lambda c: c["ledger"].append(5),
    "an entry more": lambda c: c["ledger"].append(laplace(1, what="and more")),
    "no entries": ledger(),
    "a certainty": lambda c: c.update(delta=1.0),
    "negative slack": lambda c: c.update(slack=-1e-3),
    "an opaque release": ledger(
        {"what": "x", "times": 1, "mechanism": "opaque", "epsilon": 1, "delta": 2, "adjacency": "x"}
    ),
    # other statements than follow
    **{
        f"{name} of {value}": states(name, value)
        for name in ("epsilon", "target_epsilon", "epsilon_other_adjacency", "mu", "epsilon_clt")
        for value in (0.01, -1, "x", [], 10**18, True)
        if not (name == "target_epsilon" and value == 10**18)
    },
    "delta of zero": lambda c: c.update(delta=0.0),
    "another relation": lambda c: c.update(adjacency="replace-one"),
    "no relation": lambda c: c.update(adjacency=[]),
    "no attacker": lambda c: c.update(attacker={}),
    "a weak attacker": lambda c: c["attacker"].update(advantage=1e-9),
    "private, perhaps": lambda c: c.update(private=1),
    "seeded and private": lambda c: c.update(noise="seeded: NOT PRIVATE, for research only"),
    "one field more": lambda c: c.update(comment="trust me"),
    "a name that is no hash": lambda c: c.update(model_sha256="abc"),
    # lines that hide others
    "an escape in the noise": lambda c: c.update(noise=ESCAPE),
    "an escape in a name": entry(what=ESCAPE),
    "an escape in what was found": lambda c: c.update(found={"windows": ESCAPE}),
    "an escape in what is public": lambda c: c["public_inputs"].update({ESCAPE: 1}),
    "an escape in the version": lambda c: c.update(version=ESCAPE),
    "a signature that is none": lambda c: c.update(signature="signed"),
    "a signature of another kind": lambda c: c.update(signature={"rsa": "x"}),
    # contradictions
    "public: nothing": lambda c: c["public_inputs"].clear(),
    "public: other bounds": public(bounds={"left": [-10.0, 10.0], "right": [0.0, 300.0]}),
    "public: other features": public(bounds={"left": [-10.0, 10.0], "up": [100.0, 300.0]}),
    "public: no range": public(**{"time range": None}),
    "public: another range": public(**{"time range": ["1.0", "5.0"]}),
    "public: a range in words": public(**{"time range": ["now", "then"]}),
    "public: other bins": public(**{"bin times": ["0.0", "1.0", "3.0", "5.0"]}),
    "public: fewer bins": public(**{"bin times": ["0.0", "5.0"]}),
    "public: many bins": public(**{"bin times": ["0.0"] * 20_000}),
    "public: two records": public(**{"most records of one person": 2}),
    "public: no records": public(**{"most records of one person": 0}),
    "public: counts of other times": public(**{"people per time (declared public)": [9.0] * 9}),
    "public: counts in words": public(**{"people per time (declared public)": ["many"] * T}),
    "settings: more windows than times": settings(windows=99),
    "settings: windows in words": settings(windows="many"),
    "settings: gradients": settings(measure="gradients", steps=9),
    "diagnostics: people of other times": lambda c, header: header["diagnostics"].update(
        people_per_time=[9.0] * 7
    ),
}


def statements(header, members):
    for name, change in STATEMENTS.items():
        other = copy.deepcopy(header)
        wants_header = change.__code__.co_argcount == 2
        change(other["certificate"], *([other] if wants_header else []))
        if name == "a name that is no hash":  # in a model it is made right again
            continue
        yield name, sealed(other, members)


OF_MODEL = ("public: ", "settings: ", "diagnostics: ")


def certificates(header):
    """Certificates that came beside a model, as .json."""
    good = json.dumps(header["certificate"])
    for name, change in STATEMENTS.items():
        certificate = copy.deepcopy(header["certificate"])
        if name.startswith(OF_MODEL) and name != "public: two records":
            continue
        change(certificate)
        yield name, json.dumps(certificate).encode()
    for cut in np.linspace(0, len(good) - 1, 6).astype(int):
        yield f"cut to {cut} letters", good[:cut].encode()
    yield "no text", b"\xff\xfe" + good.encode("utf-16")
    yield "deep", b"[" * 10**6
    yield "endless", b'{"epsilon": ' + b"1" * 10**7
    yield "a key twice", good.replace('"delta"', '"epsilon": 0.01, "delta"', 1).encode()


def hostile_files(path):
    """(kind, name, bytes) of all of them, made from the good model in the file."""
    header, members = unpacked(path)
    texts = ((name, sealed(header, members, change)) for name, change in TEXTS.items())
    kinds = {
        "damage": damaged(path.read_bytes()),
        "zip": zips(header, members),
        "text": texts,
        "field": fields(header, members),
        "array": arrays(header, members),
        "statement": statements(header, members),
        "certificate": certificates(header),
    }
    for kind, files in kinds.items():
        for name, data in files:
            yield kind, name, data
