"""Every constant of data near a subspace, with what set it."""

LEAST_FEATURES = 6
"""Numeric columns from which a subspace is looked for: below, gradients do without."""
MEAN_SHARE, DISTANCE_SHARE, MOMENT_SHARE = 0.01, 0.01, 0.08
"""Of mu^2, that of the one Gaussian sum that the whole budget buys."""
SHELL_RATIO = 2 ** (-1 / 3)
"""Of the radius of a shell to that of the next: the clip is up to a quarter larger than needed."""
SHELLS = 16
"""Shells, down to 1/32 of the radius of the box; people nearer to their mean count as there."""
CLIPPED = 0.05
"""Share of the records, at most, that are farther away than the clip allows for, and are shortened
to it: the second moment of the others would be noisier for the sake of these."""
MEAN_WEIGHT = 0.5
"""Of the mean, in clips, beside the second moment: it costs an eighth of the noise."""
EDGE = 1.2
"""Times 2 noise sqrt(d), where the spectrum of much noise ends: of 2,000 noise matrices one in 80
has an eigenvalue beyond it with 6 features, one in 2,000 with 20; with 1.1, one in 24."""
SMALL = 0.02
"""Of all variance: a direction with less is released as variance, whatever its noise."""
MOST_RANK = 6
"""Of a subspace in which people are measured; gradients of more features need the whole budget."""
FEATURES_PER_AXIS = 4
"""At least, of a subspace: in two axes of six features squared W2 was 1.3 times that in all of them
(eight data sets of 1,000 people at 5 times), in those of eight 1.03 (ten); 2026-11-16."""
LEAST_INSIDE = 0.5
"""Of all variance in a subspace, below which people are measured in all features instead."""
AS_COSTLY = 25.0
"""Features in which the noise of gradients costs as much as a hidden direction with all variance.
Of 190 fits with 6 to 20 features, 300 to 3,000 people at 5 times, a subspace of six was worse where
noise may hide more than .1 of the variance, one of twenty better up to .8; 2026-11-16."""
REACH = 3.0
"""Standard deviations along the widest axis from the centre to the walls: of a Gaussian, three in
a thousand are moved to the wall, of groups nobody."""
MOST_LOOKED = 3
"""Axes along which the look at motion is taken, those of most variance; as `slabs` for features."""
LEAST_WIDTH = 1e-3
"""Bandwidth, in shares of the box, that every model has: people are no atoms."""
