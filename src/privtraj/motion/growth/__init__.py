"""Populations that change: how many there are over time, who is born and who leaves, and where."""
