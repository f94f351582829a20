"""Every constant of a fit by marginal tables, with what set it.

"stand-ins": a clinic of 6,000 (sex, 12 codes, smoker, 3 numbers) and 12 columns of 20,000 people
(6 categories, 4 hidden groups that people change), epsilon 1, three seeds, 2026-11-16.
"""

ROUNDS = (0.1, 0.3, 0.3, 0.3)
"""Shares of what is paid, as squared 1/z: each column by itself, over time, all pairs, the pairs
that depend on each other again. Total variation of pairs changes by 5 % from (.1, .2) to (.2, .4)
for the first two."""
CELLS = 64
"""Cells of a number when it is measured by itself, and of whatever is fitted."""
SLABS = 8
"""Of time; 4 and 12 change total variation of pairs by 5 %."""
MOST_SLABS = 16
"""Where people are at listed times, each of these is a slab of its own up to so many."""
PER_CELL = 3.0
"""People in a cell of two numbers, in standard deviations of its noise, that set how many groups of
cells a number has there: 6 and 16 groups in place of 10 lose 5 % in total variation."""
FEWEST_GROUPS, MOST_GROUPS = 3, 16
"""Of a number."""
SIGNIFICANT = 2.0
"""Standard errors by which two columns must depend on each other to be measured together again."""
PARTICLES = 512
"""Products of distributions that are fitted; 1,000 are as good."""
PEOPLE = 4096
"""Who are drawn from them and released."""
STEPS = 300
"""Of Adam; 600 change total variation by 1 %."""
LEARNING_RATE = 0.1
MOTION = 0.1
"""Price of motion, per person, in units of the log likelihood: 0 and .3 are as good, 1 is 7 %
worse; above 0 it settles what tables cannot tell."""
LEAST_SHARE = 1e-4
"""Of a cell to begin with."""
WIDEST = 1 / 8
"""Width of a particle to begin with, along a number."""
