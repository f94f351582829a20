"""Values as text: one key for all the ways in which tables and users write a value of a category,
one form for those of an identifier, and columns as they are typed. Standard library only, because
`privtraj --help` reads it.

    "F"                                                   "F"
    1, 1.0, true, "1", "1.0", "true", "TRUE"              "1"
    "01"                                                  "01"
    null, NaN                                             None

A cell has a level if its key is that of a declared value. Files and databases differ in types, not
in keys. `spellings` is the way back, for databases, which compare texts rather than compute keys.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from hashlib import blake2b
from itertools import product
from typing import Any

from privtraj.base.errors import masked

_EMPTY = ("", "-", "NA", "N/A", "n/a", "#NA", "#N/A", "#N/A N/A", "NULL", "null")
_NO_NUMBER = ("NaN", "nan", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN")
MISSING = frozenset([*_EMPTY, *_NO_NUMBER])
"""Texts that mean a missing value in CSV files: a hyphen, and those that pyarrow takes for one;
unless they are declared."""

_WORDS = {"false": "0", "true": "1"}
_WHOLE = re.compile(r"0|-?[1-9][0-9]*")


def key_of(value: Any) -> str | None:
    """The key of a value, a cell's or a declared one; None where there is none."""
    if value is None or value != value:
        return None
    if isinstance(value, str):
        if value.endswith(".0") and is_whole(value[:-2]):
            return value[:-2]
        return _WORDS.get(value.lower(), value) if len(value) < 6 else value
    if isinstance(value, float | Decimal):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    return str(int(value))


def is_whole(key: str) -> bool:
    """Whether it is that of a whole number."""
    return _WHOLE.fullmatch(key) is not None


def spellings(key: str) -> list[str]:
    """All texts that have this key."""
    if not is_whole(key):
        return [key]
    words = [word for word, number in _WORDS.items() if number == key]
    return [key, f"{key}.0", *(case for word in words for case in cases(word))]


def cases(word: str) -> list[str]:
    """A word in capitals and small letters, in every way."""
    pairs = zip(word, word.upper(), strict=True)
    return ["".join(letters) for letters in product(*pairs)]


def fingerprint(key: str | None) -> float:
    """53 bits of a hash of a key, for digests; NaN where it is missing.

    A function of the cell alone, whatever values are declared.
    """
    if key is None or key in MISSING:
        return float("nan")
    hashed = blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return float(int.from_bytes(hashed) >> 11)


# Identifiers of people -----------------------------------------------------------------------

NUMBER_LIKE = "^ *[-+]?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][-+]?[0-9]{1,3})? *$"
HEX_LIKE = "^ *[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12,} *$"  # a UUID, a digest
AS_IT_IS = "^(-?[1-9][0-9]*|0|[0-9a-f]{32,})$"  # of these two; all are read by databases too


def identifier(text: str) -> str | None:
    """The form of an identifier that tools do not change; None where one has rounded it.

    Tools write a number anew: a column that lacked a value has 7.0 for 7, a spreadsheet 7 for 007,
    another country 7,0, R 1e+05 for 100000; a database, a UUID in capitals. So whatever reads as
    one number, or one UUID, is one person, in a table and between batches.

    One id as two people: whoever has it pays twice, and is told once. Two people as one: the unit
    of the guarantee is whoever has that form, and both are in it at the price of one; alone, each
    moves at most two units (both go, the other comes). It takes ids that differ in their writing
    alone, and a table with both is refused, as one in which a person has several records. Blanks
    and capitals of other texts are the steward's word (same_person).

    Rounded, and refused as nobody knows whose it is: 1.23E+11 of a spreadsheet, and doubles from
    2^53 on. Thousands that are set apart cannot be told from fractions.
    """
    if re.match(HEX_LIKE, text):
        return text.strip(" ").replace("-", "").lower()
    if not re.match(NUMBER_LIKE, text):
        return text
    number = text.strip(" ").replace(",", ".")
    if "." in number and "e" in number.lower():
        return None
    through_doubles = "." in number or "+" in number
    number = plain_number(number)
    return None if through_doubles and abs(Decimal(number)) >= 2**53 else number


def plain_number(number: str) -> str:
    """Without an exponent, and without zeros that say nothing."""
    text = f"{Decimal(number):f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


# A column as it is typed: NAME KIND SETTING ..., as in  sex category values=F,M fixed ------------

_YES = ("missing", "fixed")  # settings that need no value


def typed_column(words: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """("sex", {"kind": "category", "values": ["F", "M"]}) of sex category values=F,M."""
    if len(words) < 2 or not words[0]:
        raise ValueError("must be followed by NAME KIND [SETTING ...]")
    name, kind, *settings = words
    form: dict[str, Any] = {"kind": kind}
    for setting in settings:
        word, sign, text = setting.partition("=")
        if not word.isidentifier() or not (sign or word in _YES):
            raise ValueError(
                f"must not go on with '{masked(setting)}', which is no setting of '{name}': give "
                "DATA first, and put quotes around what has spaces"
            )
        if word in form:
            raise ValueError(f"must give the {word} of '{name}' once")
        form[word] = text if sign else True
        if sign and word in _YES:
            form[word] = {"true": True, "false": False}.get(text, text)
        elif word in ("values", "missing_codes"):
            try:
                form[word] = json.loads(text) if text.startswith("[") else text.split(",")
            except (ValueError, RecursionError):
                raise ValueError(
                    f"must give the {word} of '{name}' as F,M or, in quotes, as a list such as "
                    '\'["F", "M"]\''
                ) from None
    return name, form


def words_of(name: str, form: Mapping[str, Any]) -> list[str]:
    """The words that `typed_column` makes this form of."""
    words = [name, str(form["kind"])]
    for word, value in form.items():
        if isinstance(value, list | tuple):
            plain = all(isinstance(label, str) and "," not in label for label in value)
            plain = plain and not value[0].startswith("[")
            words.append(f"{word}={','.join(value) if plain else json.dumps(value)}")
        elif word != "kind" and value is not False:
            words.append(word if value is True else f"{word}={value}")
    return words
