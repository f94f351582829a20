"""Every constant of the resolution in time, with what set it.

"stand-ins": three modes, bifurcation, growth, double well, Ornstein-Uhlenbeck, a still ring, loops
as of a pen and groups in three features, 500 to 30,000 people, two or three seeds, 2026-11-16.
"""

LISTED_SHARE = 0.01
"""Share of epsilon for whether people are at the listed times: some hundred people show it."""
CLOSE = 0.05
"""How close to a listed time, in shares of the gap; people at any time are there with a tenth."""
MOMENTS = 241
"""Moments that stand for continuous time; slabs are runs of them."""
MOST_SLABS = 100
"""Of continuous time."""

PROBE_SHARE = 0.06
"""Share of epsilon for the look at motion: found and missed motion balanced on the stand-ins."""
PROBE_CELLS = {1: 8, 2: 4, 3: 3}
"""Cells per side of the look, by features; 2 for more. Fewest that show means and spreads: noise of
a mean grows with the square root of the number of cells."""
PROBE_LEVELS = 32
"""Most levels of categories in the look, where there are no numbers; as many cells as two numbers
and twice that."""
MOST_LOOKED = 14
"""Features up to which there is a look: 2^d cells of so many hide any motion in their noise."""
PROBE_BINS = 32
"""Most time bins of the look: enough to see motion that as many slabs could follow."""
STILL_PREFERENCE = 0.35
"""Log evidence, for each function that is followed, that motion must have over none. Too many slabs
cost a factor of 2 where people are still, too few a factor of 7 where they move."""
USUAL_MOTION = 0.25
"""A of every path where a look shows nothing. That of the stand-ins that move is 0.1 to 6, 1 in the
middle; a quarter of it, as people may as well be still. With 0.5 three features lose a half."""
REFUTED = 2.0
"""Log evidence against an amplitude, all paths together, that rules it out; set by hand."""
ROUGHNESS = 4.0
"""p: the energy of a path falls with frequency as f^-p. On the stand-ins 2, as of paths with kinks,
gave twice too many slabs, and 3 a third too many."""
UNSEEN_MOTION = 4.0
"""Motion of people over that of the functions that the look follows, which is all it shows: pen
strokes, growth and a double well want so much, three modes and bifurcation hardly mind."""
SLAB_NOISE = {1: 0.2, 2: 0.5, 3: 8.0}
"""c in  error of a slab = c slabs / (people epsilon), by features. Slopes of squared W2 against the
number of slabs where people hardly move."""
SLAB_NOISE_OF_GRADIENTS = 8.0
"""The same for more features, which gradients measure. Slopes are 1.4 to 8.6 (4 to 8 features, 440
people at 12 times, epsilon 1). Near the largest on purpose: the look at motion is noisiest here and
takes noise for motion; with 4 a third of the looks asked for 4 slabs or more where 2 are best."""
MOST_ORDER = 3
"""Of the functions whose means are followed, together over the features; less where cells are few.
Three turning arms are seen by the third."""
SMALLEST_SLOPE = 0.05
"""Of a function, mean square over the people: flatter ones do not tell where anybody goes."""

CURVES = 512
"""Curves that carry the people; the error of so many points is below that of 5,000 people."""
PARTICLES_PER_CURVE = 2
"""Of a slab, which curves are fitted to and which are not released: 256 leave a still ring of
30,000 people at .0004 of squared W2, 1,024 at .0002."""
MOST_READ = 33
"""Times of interest at which curves are kept; all of 600 would take a minute to couple."""
STARTS = 256
"""Particles of a slab that are coupled with those of the next to begin with; more take longer."""
READINGS = 4
"""Times within a slab at which curves are compared with its people."""
ROUNDS = 10
"""Rounds of fitting; 30 and 60 change squared W2 by less than 4 % on the stand-ins."""
BENDING = (0.05, 0.2, 0.8, 3.2, 12.8, 51.2)
"""Weights of the squared second differences of a curve's control points, against its squared
distance from the people, to choose among: the stiffest that the slabs do not contradict."""
CONTRADICTION = 0.08
"""Squared distance from the people of the slabs, in shares of their noise, that a stiffer curve may
have more than the least stiff. Growing children want stiff curves: one in six shrinks by more than
a centimetre at .03, one in ten at .06, one in fifty at .1. An Ornstein-Uhlenbeck process wants
supple ones: squared W2 .00011 at .03, .00015 at .1. Fast loops have their best at .1."""
JUMP_PRICE = 0.05
"""Squared distance that a changed level costs, beside that of the numbers, when curves are given
levels: a quarter of the box. Set by hand; see `levels`."""
SHARE_BENDING = 0.2
"""Of the shares of levels at the edges of slabs, as `BENDING` of curves; set by hand."""
ACTION = 1e-4
"""Of the squared first differences: settles what slabs cannot tell."""
HIDDEN_BENDING = 0.01
"""Bending of the curves by which the number of slabs is chosen."""
