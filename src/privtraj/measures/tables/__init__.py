"""The third way to pay: noisy tables of few columns at a time, and particles that explain them."""
