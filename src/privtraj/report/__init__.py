"""Reports: what a model says, drawn.

All of it is made from released quantities alone, but for `comparison`, which shows raw records,
says so on top, and is not for release.
"""
