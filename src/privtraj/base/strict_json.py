"""JSON that somebody else wrote: small, shallow, without surprises, or a `ValueError`.

What is read here is shown to people and compared with hashes, so one text must have one meaning:
no key twice, no NaN or Infinity, no number of a thousand digits. Size and the number of values are
counted in the bytes, before anything is made of them.
"""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

MOST_BYTES = 2**23
MOST_VALUES = 300_000
DEEPEST = 32
LONGEST_TEXT = 10_000


def loads(data: bytes) -> Any:
    """The value of a JSON text in UTF-8."""
    values = sum(map(data.count, (b",", b"[", b"{")))  # one of them before all but the first
    if len(data) > MOST_BYTES or values > MOST_VALUES:
        raise ValueError("too large")
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_refuse,
            parse_float=_float,
            parse_int=_int,
        )
    except RecursionError:
        raise ValueError("too deep") from None
    _check(value)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key is there twice")
    return made


def _refuse(constant: str) -> NoReturn:
    raise ValueError("not a number")


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("too large a number")
    return value


def _int(text: str) -> int:
    if len(text) > 20:
        raise ValueError("too large a number")
    return int(text)


def _check(value: Any) -> None:
    """Refuse what is nested too deeply for whoever walks through it later, and endless texts."""
    layer = [value]
    for _ in range(DEEPEST):
        inside: list[Any] = []
        for item in layer:
            if isinstance(item, dict):
                inside += [*item, *item.values()]
            elif isinstance(item, list):
                inside += item
            elif isinstance(item, str) and len(item) > LONGEST_TEXT:
                raise ValueError("too long a text")
        if not inside:
            return
        layer = inside
    raise ValueError("too deep")
