"""Every number of the way through domains, and what set it. Lengths are in sides of the box."""

MARGIN = 1e-6  # by which places keep off walls: far above rounding, far below what anybody measures
ON_EDGE = 1e-6  # as far from an edge of a network a place may be, by rounding, and be on it
SAMPLE_STEP = 1 / 1024  # between samples of walls and edges, which only find the nearest of them
MOST_SAMPLES = 500_000  # or fewer, where walls are very long
CLEAR_SIDE = 256  # cells a side of the table of distances to the walls
DIRECTIONS, MOST_LOOKED = 96, 200_000  # in which the inside of a corner is looked for; of all, most
SUBCELLS = 4  # a side, that are looked at for whether a cell of counts touches the domain
REDRAWS = 16  # of a particle's place in its cell before the nearest place inside is taken

# Corners: up to MOST_EXACT of them all that see each other are linked, and ways are shortest; of
# more, only near ones are, and ways are straightened afterwards. Set by time to build, 2026-11-16
MOST_EXACT = 300
FEW_SIDE, MANY_SIDE = 16, 40  # places a side between the corners
FEW_PULLS, MANY_PULLS = 1, 12  # rounds in which ways are straightened
LINK_RADIUS = 1.8  # of near ones, in distances of these places
NEAR = 4.0  # in radii of links: as far of many corners' domain it is asked who sees whom
CORNERS_SEEN, PLACES_SEEN = 24, 4  # nearest ones that are tried from a place

MOST_SEGMENTS = 10_000  # of a domain: what a model file can hold and be read in seconds
MOST_MET = 1000  # sides of a domain on a line across it: what makes every question long
MOST_NODES = 4096  # of a network: all shortest ways between them fit into 200 MB
MOST_PIXELS = 4096**2  # of a mask
