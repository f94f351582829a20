"""Every number that was chosen in the way through private gradients, and what chose it.

"Stand-ins" are the simulated data sets of `privtraj.datasets`; docs/benchmark.md has what the whole
reaches on them and on data that no number was set on. m: particles.  K: steps.  d: features.
"""

# How much of everything --------------------------------------------------------------------------
NOISE_PER_BANDWIDTH = 0.5  # above, responsibilities follow noise; found on stand-ins, 2026-11
STEPS = 20  # K; 16, 24 and 40 differ little, since all releases are explained; 2026-11-16
MAX_PARTICLES = 512  # chosen for a user; bounds the work; set by hand, 2026-11
LEAST_PARTICLES = 4  # two miss groups: 1.7 times the error in eight features, 2026-11-16
LEAST_AFFORDED = 16  # particles that are kept however long a fit then takes; set by hand, 2026-11
MOST_COORDINATES = 128  # numbers and levels together; by hand: a step costs as many products
MOST_WORK = 1e11  # numbers summed over people in one fit: some five minutes on two cores, measured
CLIP_PER_ROOT = 0.53  # typical norm of a person's vector, over sigma sqrt(d); measured, 2026-11
CLIP_GROWTH = 0.08  # of that for every feature beyond two; measured on stand-ins, 2026-11

# The vector of a person, and its clip ------------------------------------------------------------
KAPPA_SPREAD = 0.3  # weight of the residual beside the gradient; set by hand on stand-ins, 2026-11
KAPPA_MASS_EXPONENT = 0.25  # masses weigh (d / 2)^0.25: the gradient's norm grows with d; by hand
CLIP_QUANTILE = 0.9  # 0.8 is as good, 0.97 is 2 % worse: reweighting knows the clip
CLIP_DRAWS = 128  # people drawn of the mixture to estimate it; set by hand, 2026-11

# The schedule ------------------------------------------------------------------------------------
SEARCH_STEPS = 2  # first steps, which find the people's place and scale; set by hand, 2026-11
SETTLING_SHARE = 0.4  # of the steps, at the end; set by hand on stand-ins, 2026-11
LEAST_ANNEALING = 3  # steps before settling
STEP_SIZE, LAST_STEP_SIZE = 0.8, 0.15  # of an EM step; set by hand on stand-ins, 2026-11
ANNEALED_TO = 0.1  # of the bandwidth, at least, over the annealing; set by hand, 2026-11
TEMPERATURE = 0.25  # of a unit step in bandwidths at d = 2; set by hand on stand-ins, 2026-11
HOT_SHARE = 0.75  # of the steps with Langevin noise and relocation; set by hand, 2026-11
NOISE_LIMIT = 0.3  # largest privacy noise of a step in bandwidths; by hand on stand-ins, 2026-11
MASS_RATE = 0.35  # gain of the running masses before settling; set by hand, 2026-11
SETTLING_MASSES = 3  # settling gains are 1/3, 1/4, ..: an average; set by hand, 2026-11
SEARCH_SHRINK = 0.1  # smallest factor of the bandwidth in a searching step; set by hand, 2026-11
SETTLING_SHRINK, SETTLING_GROW = 0.9, 1.1  # limits of the same while settling; set by hand, 2026-11

# The step ----------------------------------------------------------------------------------------
TIME_COUPLING = 0.1  # weight of the neighbours in a unit step; set by hand on stand-ins, 2026-11
SINKHORN_SWEEPS = 8  # warm-started: L1 marginal errors of 2e-3 to 2e-2, measured, 2026-11
BIAS_LIMIT = 4.0  # of log weights; keeps responsibilities finite; set by hand, 2026-11
LIGHT, HEAVY = 0.4, 1.6  # masses in shares of 1/m at which a particle is moved or split; by hand
MOVED_AT_ONCE = 8  # one in so many particles; set by hand, 2026-11
SPLIT_APART = 0.5  # bandwidths between the halves of a split particle, times a normal; by hand
LEAST_SPREAD = 0.05  # of the residual variance: a noisy one may be negative; set by hand, 2026-11
CLUSTER_WIDTH = 0.1  # of the cluster in which particles begin; set by hand, 2026-11
FIRST_BANDWIDTH = 12**-0.5  # standard deviation of somebody anywhere in the box

# Reweighting -------------------------------------------------------------------------------------
POINTS = 1024  # that are weighted; 512 are 2 % worse where the budget is large, 2026-11-16
PRIOR_WORTH = 300.0  # people; squared W2 of 30 to 300 differs by less than 1 %, 2026-11-16
KERNEL_KEPT = 0.5**0.5  # of the bandwidth: half of its variance stays noise around a point
NEWTON_STEPS, NEWTON_TOLERANCE = 50, 1e-3  # of log weights: 0.1 %; three to six are typical
LARGEST_STEP, HALVINGS = 3.0, 20  # of a log weight at once; how often a step is halved at most
CURVE_CELLS = 256  # along each axis, by which points are put in order: finer than most bandwidths
