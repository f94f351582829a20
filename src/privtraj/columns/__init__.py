"""Columns: what a steward declares of them, and their places in the unit cube."""
