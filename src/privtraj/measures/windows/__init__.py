"""Resolution in time: how people move, how many slabs of time to measure, curves through them."""
