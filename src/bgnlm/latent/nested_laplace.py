"""Nested Laplace approximation of log p(y | m): the hyperparameters are summed out around all their modes.

By a grid along the principal axes around each mode, which is coarser for many hyperparameters. Grids of several modes
share out what they have in common.
"""

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm.latent.inner import InnerLaplace, Mode
from bgnlm.latent.outer_modes import (
    ABOVE,
    NEGLIGIBLE,
    ROUGH_TOLERANCE,
    OuterMode,
    add_mode,
    climb,
    continued,
    distance,
    find_modes,
)

_ATTEMPTS = 3
_HALVINGS = 10
_MOST_WITH_ALL = 2  # hyperparameters of which all points of the grid are nodes
_REACH = 8.0  # nats below the mode that a node may be
_MAX_POINTS = 400  # of one grid
_VARIES = 0.7  # nats of a correction that is not taken for the same around a mode
_VARIES_ALONE = 0.25  # the same with one hyperparameter
_CHANGES = 0.5  # nats within a standard deviation, and share of it, from which on every point has its own correction
_MOST = 30.0  # nats of a correction that still is one
_FAR = 2.0  # standard deviations from a mode to which a parabola of corrections is trusted


class Node(NamedTuple):
    """Hyperparameters with their posterior probability."""

    place: FloatArray
    log_weight: float
    mode: Mode


class Point(NamedTuple):
    """A point of a lattice: hyperparameters, what they count for, fields and coefficients."""

    place: FloatArray
    value: float
    mode: Mode


Points = dict[tuple[int, ...], Point]


class Mesh(NamedTuple):
    """Distance of the points of a lattice, in standard deviations, and nats below the mode where it ends."""

    spacing: float
    floor: float


class Integrated(NamedTuple):
    """A model with its hyperparameters summed out.

    Attributes
    ----------
    log_marginal
        log p(y | m), -inf where no mode was found.
    modes
        Over the hyperparameters; starts for similar models.
    nodes
        Of the grids, with normalised weights.
    correction
        Nats that the second order added, on average.
    """

    log_marginal: float
    modes: tuple[OuterMode, ...]
    nodes: tuple[Node, ...]
    correction: float


def integrate(inner: InnerLaplace, known: Sequence[OuterMode] = (), corrected: bool = True) -> Integrated:
    """Sum out the hyperparameters; from `known` modes of a similar model, or from all starts."""
    found = find_modes(inner, known)
    if not found:
        return Integrated(-math.inf, (), (), 0.0)
    for _ in range(_ATTEMPTS):
        modes = _that_matter(found)
        floods = [_flood(inner, modes, number, _mesh(inner)) for number in range(len(modes))]
        tops = [max(points.values(), key=lambda point: point.value) for points in floods]
        # A grid that goes up further than its mode has come to another one.
        higher = [top for mode, top in zip(modes, tops, strict=True) if top.value > mode.log_integrand + ABOVE]
        changes = [add_mode(found, climb(inner, top.place, top.mode, None)) for top in higher]
        if not any(changes):
            break
    masses, corrections, nodes = [], [], []
    for number, (mode, points) in enumerate(zip(modes, floods, strict=True)):
        plain = _log_sum([point.value for point in points.values()])
        if corrected:
            points = _corrected(inner, modes, number, points)
        around = _nodes(inner, mode, points)
        masses.append(_log_sum([node.log_weight for node in around]))
        corrections.append(_log_sum([point.value for point in points.values()]) - plain)
        nodes += around
    total = _log_sum(masses)
    if not math.isfinite(total):
        return Integrated(-math.inf, (), (), 0.0)
    nodes = [node._replace(log_weight=node.log_weight - total) for node in nodes]
    average = sum(math.exp(mass - total) * c for mass, c in zip(masses, corrections, strict=True))
    return Integrated(total, tuple(found), tuple(nodes), average)


def _corrected(inner: InnerLaplace, modes: Sequence[OuterMode], number: int, points: Points) -> Points:
    """Points of a lattice with what the Laplace approximation leaves out: as at the mode, or a parabola around it."""
    mode = modes[number]
    here, size = _correction(inner, mode.place, mode.mode), len(mode.place)
    slopes, curvatures = np.zeros(size), np.zeros(size)
    if abs(here) > (_VARIES_ALONE if size == 1 else _VARIES):
        for j, axis in enumerate(mode.axes.T):
            up, down = (_correction(inner, mode.place + side * axis, mode.mode, here) for side in (1.0, -1.0))
            slopes[j], curvatures[j] = 0.5 * (up - down), up - 2.0 * here + down
            if size == 1 and max(abs(up - here), abs(down - here)) > max(_CHANGES, _CHANGES * abs(here)):
                return _flood(inner, modes, number, _mesh(inner), corrected=True)
    if not slopes.any():
        return {key: point._replace(value=point.value + here) for key, point in points.items()}
    corrected = {}
    for key, point in points.items():
        away = np.clip(np.linalg.solve(mode.axes, point.place - mode.place), -_FAR, _FAR)
        correction = here + float(away @ slopes + 0.5 * np.square(away) @ curvatures)
        corrected[key] = point._replace(value=point.value + correction)
    return corrected


def _correction(inner: InnerLaplace, place: FloatArray, mode: Mode, otherwise: float = 0.0) -> float:
    there = inner.evaluate(place, mode)
    if there.log_integrand == -math.inf:
        return otherwise
    found = inner.correction(place, there)
    return found if math.isfinite(found) else otherwise


def _that_matter(modes: Sequence[OuterMode]) -> list[OuterMode]:
    best = max(mode.log_integrand for mode in modes)
    return [mode for mode in modes if mode.log_integrand > best - NEGLIGIBLE]


def _nodes(inner: InnerLaplace, mode: OuterMode, points: Points) -> list[Node]:
    """Nodes around a mode whose weights add up to its mass."""
    mesh = _mesh(inner)
    volume = math.log(abs(np.linalg.det(mode.axes))) + len(mode.place) * math.log(mesh.spacing)
    if len(mode.place) > _MOST_WITH_ALL:
        return _on_axes(inner, mode, points, mesh, volume)
    return [Node(point.place, point.value + volume, point.mode) for point in points.values()]


def _mesh(inner: InnerLaplace) -> Mesh:
    """As fine as it can be afforded, and finer where dispersions make posteriors skew."""
    if inner.n_hyperparameters == 1:
        return Mesh(0.9, 7.0)
    if inner.n_hyperparameters > _MOST_WITH_ALL:
        return Mesh(1.8, 3.2)
    return Mesh(1.0, 6.0) if inner.has_dispersion or inner.integrates_slopes else Mesh(1.4, 4.0)


def _on_axes(inner: InnerLaplace, mode: OuterMode, points: Points, mesh: Mesh, volume: float) -> list[Node]:
    """Few nodes that stand for many points.

    Two on each axis, as far out as it takes for all of them together to have the variances, each side with its own.
    """
    size = len(mode.place)
    origin = points[(0,) * size].value
    nodes, deviations = [], []
    for j, direction in itertools.product(range(size), (-1, 1)):
        half = sum(
            math.exp(min(point.value - origin, 0.0))  # what is higher belongs to another mode
            for place, point in points.items()
            if direction * place[j] == sum(map(abs, place)) > 0
        )
        deviation = mesh.spacing * (1.0 + 2.0 * half) / math.sqrt(2.0 * math.pi)
        deviations.append(deviation)
        nodes.append(_within_reach(inner, mode, direction * math.sqrt(size) * deviation * mode.axes[:, j]))
    mass = _log_sum([point.value for point in points.values()]) + volume - math.log(sum(deviations))
    return [
        Node(place, mass + math.log(deviation), mode.mode) for place, deviation in zip(nodes, deviations, strict=True)
    ]


def _within_reach(inner: InnerLaplace, mode: OuterMode, step: FloatArray) -> FloatArray:
    """A place in some direction from a mode that is not much less probable."""
    for _ in range(_HALVINGS):
        there = inner.evaluate(mode.place + step, mode.mode, ROUGH_TOLERANCE)
        if there.log_integrand > mode.log_integrand - _REACH:
            return np.asarray(mode.place + step)
        step = 0.6 * step
    return mode.place


def _flood(inner: InnerLaplace, modes: Sequence[OuterMode], number: int, mesh: Mesh, corrected: bool = False) -> Points:
    """Points of the lattice around a mode with the log integrand there, out to where it does not matter.

    Where grids of several modes meet, a point counts by the share of its own mode in the sum of all of them.
    """
    mode = modes[number]
    origin = (0,) * len(mode.place)
    base = mode.log_integrand + (_correction(inner, mode.place, mode.mode) if corrected else 0.0)
    value = base + _log_share(modes, number, mode.place)
    points = {origin: Point(mode.place, value, mode.mode)}
    edge = [origin]
    while edge and len(points) < _MAX_POINTS:
        following = []
        for point, j, direction in itertools.product(edge, range(len(origin)), (-1, 1)):
            neighbour = (*point[:j], point[j] + direction, *point[j + 1 :])
            if neighbour in points:
                continue
            place = mode.place + mode.axes @ (mesh.spacing * np.array(neighbour, dtype=np.float64))
            before = points.get((*point[:j], point[j] - direction, *point[j + 1 :]))
            near = points[point].mode
            start = near if before is None else continued(near, before.mode)
            there = inner.evaluate(place, start, ROUGH_TOLERANCE)
            value = there.log_integrand + _log_share(modes, number, place)
            if corrected and math.isfinite(value):
                correction = inner.correction(place, there)
                value = value + correction if abs(correction) < _MOST else -math.inf
            points[neighbour] = Point(place, value, there.mode)
            if value > base - mesh.floor:
                following.append(neighbour)
        edge = following
    return points


def _log_share(modes: Sequence[OuterMode], number: int, place: FloatArray) -> float:
    """Log of the part of a point that belongs to one of several modes."""
    if len(modes) == 1:
        return 0.0
    heights = [
        mode.log_integrand - 0.5 * distance(mode, place) ** 2  # normal densities, of equal height as the modes
        for mode in modes
    ]
    return heights[number] - _log_sum(heights)


def _log_sum(values: Sequence[float]) -> float:
    largest = max(values)
    if largest == -math.inf:
        return -math.inf
    return largest + math.log(sum(math.exp(value - largest) for value in values))
