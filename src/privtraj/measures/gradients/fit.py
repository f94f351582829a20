"""A fit by private gradients: noisy sums over people at every step of mean-field Langevin dynamics.

measure   clipped sums of a step (`moments`), paid for in equal parts
infer     the particles move to the people, and the bandwidth is learned (`langevin`)
couple    in the same step, neighbouring times draw each other by debiased transport
weigh     points of the last mixture, so that they explain every release (`reweighting`)

Levels of categories are coordinates beside the numbers until then (`columns.embedding`); the points
that are weighted have one level of each.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from privtraj.base.arrays import Floats
from privtraj.columns.axes import Embedding
from privtraj.measures.gradients import start
from privtraj.measures.gradients.langevin import Fixed, Trace, run
from privtraj.measures.gradients.moments import PrivateGradients
from privtraj.measures.gradients.reweighting import reweighted
from privtraj.measures.gradients.schedule import Schedule, gradient_schedule
from privtraj.measures.gradients.settings import GradientSettings
from privtraj.measures.marginals import Marginals, Progress
from privtraj.privacy.guard import Guard


def fit_gradients(
    guard: Guard,
    people: Floats,
    settings: GradientSettings,
    rng: np.random.Generator,
    gaps: Floats,
    progress: Progress | None = None,
) -> Marginals:
    """Marginals of people (T,), public or released, at times `gaps` (T - 1,) apart."""
    levels = Embedding(guard.axes) if guard.axes.mixed else None
    z = settings.noise_multiplier
    gradients = PrivateGradients(guard.ask, people, z, rng, levels)
    return descend(gradients, Embedding(guard.axes), settings, rng, gaps, progress)


def descend(
    gradients: PrivateGradients,
    embedding: Embedding,
    settings: GradientSettings,
    rng: np.random.Generator,
    gaps: Floats,
    progress: Progress | None = None,
) -> Marginals:
    """The dynamics from the middle of the box, then the weights that explain every release."""
    state = start.middle(len(gaps) + 1, settings.particles, embedding.middle, rng)
    schedule = gradient_schedule(settings.steps, settings.time_coupling, embedding.width)
    state, trace = run(state, gradients, schedule, fixed(gaps, settings.bandwidth), rng, progress)
    mixture = jax.tree.map(lambda leaf: np.asarray(leaf, dtype=np.float64), state.mixture)
    found = Marginals(
        mixture.particles,
        np.full(mixture.particles.shape[:2], 1 / settings.particles),
        mixture.bandwidth,
        resolution=mixture.bandwidth,
        diagnostics={
            "marginal_error": float(trace.marginal_error[-1]),
            "noise_over_bandwidth": float(trace.noise[-1].max()),
            "effective_temperature": _effective_temperature(trace, schedule),
        },
    )
    releases, people = gradients.releases, gradients.people
    levels = embedding if embedding.axes.mixed else None
    if levels is not None and settings.bandwidth is None:
        free = max(embedding.axes.n_numbers, 1)  # (`likelihood`)
        found = found._replace(bandwidth=found.bandwidth * math.sqrt((free + 1) / free))
    return reweighted(found, releases, people, rng, whole=settings.by_hand, levels=levels)


def fixed(gaps: Floats, bandwidth: float | None = None) -> Fixed:
    """What a run between times `gaps` (T - 1,) apart keeps: a bandwidth by hand, or learned."""
    return Fixed(
        jnp.asarray(np.float32(gaps / gaps.mean())),
        jnp.asarray(np.full(len(gaps) + 1, bandwidth or 0.0, np.float32)),
    )


def _effective_temperature(trace: Trace, schedule: Schedule) -> float:
    """Temperature of the dynamics over the one asked for; above 1, privacy noise is the larger.

    A temperature is a variance: mean over steps of max(1, (privacy noise / Langevin noise)^2).
    """
    hot = schedule.temperature > 0
    ratio = np.asarray(trace.noise / trace.alpha)[hot] / schedule.temperature[hot, None]
    return float(np.maximum(ratio**2, 1.0).mean())
