"""What tests of several rooms ask of rows."""


def rows_in_bins(snapshots):
    """The rows sorted by bin: points (n, d), and the number (n,) of the nearest bin as `slabs`."""
    return snapshots._rows.in_slabs(snapshots.axis.bins)
