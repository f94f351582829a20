"""Every number that was chosen for the published recipe where the paper gives none."""

# Sampled people --------------------------------------------------------------------------------
SAMPLED_STEPS = 30  # whatever the number of people: it must be known in advance; by hand, 2026-11

# The ledger of a recipe, whose cost follows -----------------------------------------------------
LEAST_EPSILON, MOST_EPSILON = 1e-6, 25.0  # of its cap: above, the slack of the noise shows
SLACK_ROOM = 1 + 1e-3  # of the cap above what the phases cost, for the slack of the noise

# Where particles begin -------------------------------------------------------------------------
START_VARIANCE = 0.2  # of the normal start around the middle of the box: the paper's N(1/2, 0.2 I)

# Warm starts: how centres move -----------------------------------------------------------------
AT_MEDIAN = 1e-12  # distance at which a person is on the median: squares below underflow
REACH = 1.5  # radius within which people count in full, in sqrt(d) spreads; by hand, 2026-11
SHRINK = 0.5  # of the radius, at most, per step; set by hand, 2026-11
MIN_SPREAD = 0.005  # of a cluster, in shares of the box; set by hand, 2026-11
SIGNIFICANT_DEVIATIONS = 2.0  # of a count's noise that a cluster must have; set by hand, 2026-11
SMALLEST_SHARE = 0.02  # of an equal part of the people that it must have without noise; by hand
FIRST_CENTRES = 0.7  # share of the width of the cube over which they are; set by hand, 2026-11
AVERAGED = 3  # one in so many steps, the last ones, are averaged; set by hand, 2026-11

# The objective ---------------------------------------------------------------------------------
OBJECTIVE_SWEEPS = 200  # of Sinkhorn's algorithm, from nothing
CLOSEST = 1e-9  # particles nearer than this count as that far apart: a logarithm is taken
