"""Every table and figure of the paper again, with its settings and with ours beside them.

Beside the package, not part of it: `python -m reproduce NAME --out DIR` from the repository.
`docs/paper.md` maps the paper's statements to code.
"""
