"""Every number that was chosen in the way through counts, and what chose it.

"Stand-ins" are the simulated data sets of `privtraj.datasets`; docs/benchmark.md has what the whole
reaches on them and on data that no number was set on. N: people per time.  d: features.
"""

# The survey of how concentrated people are -----------------------------------------------------
SURVEY_SHARE = 0.06  # of epsilon; set by hand on stand-ins, 2026-11
SURVEY_SIDES = {1: 32, 2: 16, 3: 5, 4: 4}  # cells per side by d; by hand, 2026-11
SURVEY_SIDES_BEYOND = 2  # for more features
STANDARD_ERRORS_BELOW = 3.0  # of the sum of squares: noise must not pass for concentration, as in
# 1 of 6 surveys at 1.0; 2.0 to 4.0 choose as well, sweep of 2026-11-16
WIDENING = 0.8  # squared width that cells of side 1 add to a group; set by hand, 2026-11

# Cells per side --------------------------------------------------------------------------------
MOST_CELLS_PER_TIME = 2**18  # bounds work and memory; set by hand, 2026-11
NOISE_COST = {1: 0.0018, 2: 0.0125, 3: 0.03}  # c_d, by d: squared distance over which noise carries
# people; fitted to squared W2 of 148 cases at the level of one slab (stand-ins and strokes, 40 to
# 6,720 people a time, epsilon 0.25 to 4, sides 2 to 256), then c_2 and c_3 to whole fits (16 cases,
# factors 1/4 to 8, two seeds each; half or twice as much costs 5 % on average), 2026-11-16
NOISE_COST_BEYOND = 0.5  # for more features; by continuation
USUAL_WIDTH = 0.2  # of people, in sides of the box; wider ones want no other cells, same sweep

# Significant cells -----------------------------------------------------------------------------
SIGNIFICANCE_EXPONENT = 1.6  # chance of a false cell: cells^-1.6 / 2; by hand on stand-ins, 2026-11
NEIGHBOUR_EXPONENT = 0.85  # beside one: chance 3^(-0.85 d) / 2; set by hand on stand-ins, 2026-11
BLOCK_EXPONENT = 1.5  # the same for blocks, larger if false; set by hand on stand-ins, 2026-11
MAX_POOLINGS = 2  # of counts, to cells of 2 and 4 times the side; set by hand, 2026-11
GROWTH_ROUNDS = 2  # of neighbours; set by hand on stand-ins, 2026-11
MAJORITY = 0.5  # of the people: a reading with fewer is completed, with more it may stand in
FALSE_ISLANDS = 0.05  # expected in a fit: groups of cells that are noise alone; by convention
OWN_NOISE_SHARE = 0.2  # of its noise that a cell of a block gets beside its count; by hand, 2026-11

# Averages over time ----------------------------------------------------------------------------
CAUTION = 4.0  # times the estimated motion: 1 blurs people who move, 4, 8 and 32 do not, and 4
# averages most; on stand-ins, three or four seeds, 2026-11-16

# Pooling over time -----------------------------------------------------------------------------
TIME_COUPLING = 1.0  # the price as derived in `pooling`
MOTION_PRICE = 0.03  # most that the median motion may cost; set by hand on stand-ins, 2026-11
BLOCKS_PER_SIDE = {1: 20, 2: 10, 3: 6}  # by d; bounds the work; set by hand, 2026-11
BLOCKS_PER_SIDE_BEYOND = 4  # for more features
BLURS = (64.0, 16.0, 4.0, 1.0)  # from blurred transport, which settles at once, to the wanted one
SWEEPS = (30, 30, 30, 150)  # at most, of each blur
TRANSPORT_BLUR = 0.5  # eta of a mean gap, in squared blocks; set by hand, 2026-11
CONVERGED = 1e-12  # largest change of a share in a sweep after which none is needed
SHORTEST_GAP = 0.5  # in mean gaps: below, transport is as between these; set by hand, 2026-11

# People inside cells ---------------------------------------------------------------------------
SMOOTHNESS = 0.3  # s in sides of a cell, as wide as an even cell (1 / sqrt(12)). 0.4 loses 8 % in
# squared W2 over seven cases, three seeds; 0.2 shows the cells; 2026-11-16
ROUNDS = (
    10  # of explaining masses. On the same cases squared W2 is 17 % lower at 8 than where masses
)
# agree up to noise; 30 gain no more and leave twice the gaps where people are few
OVERLAP = 0.75  # b in distances of particles: 0.5 to 1 are alike in squared W2 up to 3 %, and the
# error of the density falls from .21 to .11
PARTS = 4  # of a cell, a side, in which the density is computed; fewer where there is no room
FARTHEST = 3.0  # widths to which normals reach on the grid
LEAST_PART = 1e-7  # of the people: a part of a cell with less has nobody

# Released particles ----------------------------------------------------------------------------
RELEASED_PARTICLES = 256  # at each time; set by hand, 2026-11
