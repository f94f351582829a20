"""Curves through windows of time: particles that move while they are measured.

Particle i is a curve  x_i(t) = sum_k B_k(t) c_ik  with hat functions B_k at K + 1 knots: the first
and the last time, and the edges between windows. The people of a window were there at all its
times, so a window shows the curves blurred by their own motion, and that blur is undone by asking
that the curves, read at J times of the window, together look like its people:
    min over c   sum_k W2^2( {x_i(t_kj)}_ij , people of window k )
                 + bending |second differences of c|^2 + action |first differences of c|^2.
The noise of windows that are next to each other is independent, and curves that follow it tremble.
So bending is the largest of a ladder with which curves are as near to the people of the windows, up
to a part of their noise, as with the smallest; and smaller still where that is far from them.
One round transports the m J readings of every window towards its people along a random orthonormal
basis, one coordinate at a time by sorting (exact in one dimension; repeated, it carries any cloud
to any other), and puts the nearest curves through where they arrived, by least squares. All of it
is post-processing.
"""

from __future__ import annotations

import numpy as np

from privtraj.base.arrays import Floats, Ints, Mask
from privtraj.base.space import hat_functions

ROUNDS = 10
"""Rounds of fitting; 30 and 60 change squared W2 by less than 4 % on the stand-ins."""
BENDING = (0.05, 0.2, 0.8, 3.2, 12.8, 51.2)
"""Weights of the squared second differences of a curve's control points, against its squared
distance from the people, to choose among: the stiffest that the windows do not contradict."""
SUPPLE = (0.0125, 0.003)
"""Weights below these, for curves that are farther from the people than `TOO_FAR`: in few windows
people turn within each. Nine simulated sets of tracks in three features that set nothing (40 to 60
people at 13 to 20 times, epsilon 2) are .74 as long as true ones without them and .85 with them, at
.62 of the squared W2; in the plane, where windows are many, one set of twelve changes, by 3 %."""
TOO_FAR = 0.25
"""Squared distance from the people, in shares of the noise of windows. With .1 tracks are a little
longer, and noise in twelve windows is followed."""
CONTRADICTION = 0.08
"""Squared distance from the people of windows, in shares of their noise, that a stiffer curve may
have more than the least stiff. Growing children want stiff curves: one in six shrinks by more than
a centimetre at .03, one in ten at .06, one in fifty at .1. An Ornstein-Uhlenbeck process wants
supple ones: squared W2 .00011 at .03, .00015 at .1. Fast loops have their best at .1."""
ACTION = 1e-4
"""Of the squared first differences: settles what windows cannot tell."""


def stiffest_curves(
    clouds: Floats,
    times: Floats,
    knots: Floats,
    start: Floats,
    noise: float,
    rng: np.random.Generator,
    still: Mask | None = None,
) -> Floats:
    """Control points (m, K + 1, d) of m curves, as stiff as the windows allow.

    clouds: (K, m J, d) people of each window, equally many.  times: (K, J) when curves are read.
    knots: (K + 1,) increasing.  start: (m, K, d) where each curve is in each window, roughly.
    noise: squared W2 to expect between the people of a window and those who were there.
    still: (d,) coordinates that never change: curves are constant there.
    """
    (windows, total, d), readings = clouds.shape, times.shape[1]
    basis, middle = hat_functions(times.ravel(), knots), hat_functions(times.mean(axis=1), knots)

    def curves(bending: float) -> tuple[float, Floats]:
        """Their distance from the people, and their control points."""
        rigid = penalty(windows + 1, bending, ACTION)
        smooth = np.linalg.solve(basis.T @ basis / readings + rigid, basis.T / readings)
        first = np.linalg.solve(middle.T @ middle + rigid, middle.T)
        control = np.einsum("ek,mkd->med", first, start)
        distances = []  # how far each round would carry the readings, in the mean over the windows
        for _ in range(ROUNDS):
            points = np.einsum("qe,med->qmd", basis, control).reshape(windows, total, d)
            # margins along a random basis become those of the clouds
            axes, _ = np.linalg.qr(rng.standard_normal((windows, d, d)))
            along, wanted = points @ axes, np.sort(clouds @ axes, axis=1)
            reached = np.empty_like(along)
            np.put_along_axis(reached, np.argsort(along, axis=1), wanted, axis=1)
            carried = points + (reached - along) @ np.swapaxes(axes, 1, 2)
            distances.append(np.mean(np.sum((carried - points) ** 2, axis=2)))
            at_readings = carried.reshape(windows * readings, total // readings, d)
            control = np.einsum("eq,qmd->med", smooth, at_readings)
            if still is not None:
                control[:, :, still] = control[:, :, still].mean(axis=1, keepdims=True)
        return float(np.mean(distances[ROUNDS // 2 :])), np.clip(control, 0.0, 1.0)

    least, best = curves(BENDING[0])
    if noise > 0 and least > TOO_FAR * noise:
        for bending in SUPPLE:
            distance, control = curves(bending)
            if distance < least:
                least, best = distance, control
            if least <= TOO_FAR * noise:
                break
        return best
    for bending in BENDING[1:]:
        distance, control = curves(bending)
        if distance > least + CONTRADICTION * noise:
            break
        least, best = min(least, distance), control
    return best


def knots_of(moments: Floats, window_of_moment: Ints) -> Floats:
    """(K + 1,) the first moment, the middle between neighbouring windows, the last moment."""
    cuts = np.flatnonzero(np.diff(window_of_moment))
    middles = (moments[cuts] + moments[cuts + 1]) / 2
    return np.concatenate([moments[:1], middles, moments[-1:]])


def reading_times(moments: Floats, window_of_moment: Ints, readings: int) -> Floats:
    """(K, J) times of each window, spread evenly over its moments."""
    shares = (np.arange(readings) + 0.5) / readings
    rows = []
    for window in range(window_of_moment[-1] + 1):
        inside = moments[window_of_moment == window]
        rows.append(np.interp(shares * len(inside) - 0.5, np.arange(len(inside)), inside))
    return np.stack(rows)


def penalty(knots: int, bending: float, action: float) -> Floats:
    """Quadratic form (knots, knots) of weighted squared second and first differences."""
    first = np.diff(np.eye(knots), axis=0)
    second = np.diff(np.eye(knots), 2, axis=0)
    form: Floats = bending * second.T @ second + action * first.T @ first
    return form
