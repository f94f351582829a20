"""Blocks of code in pages of the documentation."""

import re

BLOCK = re.compile(r"^( *)```+ *(\S*).*?\n(.*?)^\1```+ *$", re.DOTALL | re.MULTILINE)


def blocks(text):
    """Pairs (language, code) of the fenced blocks of a page."""
    return [
        (language, re.sub(f"^{indent}", "", code, flags=re.MULTILINE))
        for indent, language, code in BLOCK.findall(text)
    ]
