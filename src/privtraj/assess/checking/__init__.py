"""A steward's own look at a table before the budget is gone, and at what was released after it."""
