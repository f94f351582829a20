"""A column as it is typed: NAME KIND SETTING ..., as in  sex category values=F,M fixed.

Standard library only, because `privtraj --help` reads it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from privtraj.base.text import masked

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
        form[word] = _setting(name, word, text) if sign else True
    return name, form


def words_of(name: str, form: Mapping[str, Any]) -> list[str]:
    """The words that `typed_column` makes this form of."""
    settings = {
        word: value for word, value in form.items() if word != "kind" and value is not False
    }
    return [name, str(form["kind"]), *(_typed(*setting) for setting in settings.items())]


def _typed(word: str, value: Any) -> str:
    if word != "values":
        return word if value is True else f"{word}={value}"
    plain = all(isinstance(label, str) and "," not in label for label in value)
    plain = plain and not value[0].startswith("[")
    return f"{word}={','.join(value) if plain else json.dumps(value)}"


def _setting(name: str, word: str, text: str) -> Any:
    if word in _YES:
        return {"true": True, "false": False}.get(text, text)
    if word != "values":
        return text
    if not text.startswith("["):
        return text.split(",")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(
            f"must give the values of '{name}' as F,M or, in quotes, as a list such as "
            '\'["F", "M"]\''
        ) from None
