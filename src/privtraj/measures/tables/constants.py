"""Every constant of a fit by marginal tables, with what set it.

"stand-ins": a clinic of 6,000 (sex, 12 codes, smoker, 3 numbers) and 12 columns of 20,000 people
(6 categories, 4 hidden groups that people change), epsilon 1, three seeds, 2026-11-16.
"""

ROUNDS = (0.02, 0.15, 0.3, 0.33, 0.2)
"""Shares of what is paid, as squared 1/z: how many people, each column by itself, each over time,
all pairs, and the pairs that depend on each other in parts of time. The optimum is flat: .1 more
for any of them, and none for the last, change total variation of pairs by 5 % at most."""
CELL_PEOPLE = 8.0
"""People in a cell of one number, in standard deviations of its noise, if all cells had as many:
32 cells for 6,000 people, where 64 lose 10 % in total variation of pairs and 16 lose 30 %."""
CELLS = (16, 256)
"""Fewest and most cells of a number."""
SLABS = 8
"""Of time; 5 is as good on the stand-ins, 12 lose 5 %."""
MOST_SLABS = 16
"""Where people are at listed times, each of these is a slab of its own up to so many."""
PER_CELL = 5.0
"""People in a cell of two numbers, in standard deviations of its noise, that set how many groups of
cells a number has there, about 8: 1.5 loses a third in correlations, 3 a tenth."""
FEWEST_GROUPS, MOST_GROUPS = 3, 16
"""Of a number."""
PARTS = 3
"""Of time, in which pairs that depend on each other are measured again: where a population parts,
squared W2 is .006 and .011 without; the stand-ins, whose pairs hardly change, lose 2 %."""
SIGNIFICANT = 2.0
"""Standard errors by which two columns must depend on each other to be measured together again."""
PARTICLES = 512
"""Products of distributions that are fitted; 1,024 and 2,048 are as good."""
PEOPLE = 4096
"""Who are drawn from them and released."""
STEPS = 300
"""Of Adam: 200 lose 5 % in total variation, 600 follow the noise and lose 3 to 8 %."""
LEARNING_RATE = 0.1
"""Of Adam."""
MOTION = 0.003
"""Price of motion, per person, in units of the log likelihood: .01 is as good, .1 hides a third of
a drift of shares from 20 to 70 % of 8,000 people, and 0 loses 5 % in total variation; above 0 it
settles what tables cannot tell."""
LEAST_SHARE = 1e-4
"""Of a cell to begin with."""
WIDEST = 1 / 8
"""Width of a particle to begin with, along a number; 1/20 loses 5 %."""
