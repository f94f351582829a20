"""Models that grow: batches of people who were in no earlier one, for years at the same epsilon."""
