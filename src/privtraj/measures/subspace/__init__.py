"""Data near a subspace: a private second moment, its rank, and people measured along few axes."""
