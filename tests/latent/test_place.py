"""Columns of positions and labels: what they may hold, and where new values are."""

import math

import numpy as np
import pytest

from bgnlm.errors import DataError, SettingError
from bgnlm.latent import log_marginal
from bgnlm.latent.fields import AR1, IID, OU, RW1, Grouped
from bgnlm.latent.place import check_fields, column_values, describe, place, place_new, positions_of

EVERY = [IID("pos"), AR1("pos"), RW1("pos"), OU("pos"), Grouped("pos")]


@pytest.mark.parametrize("field", EVERY, ids=describe)
def test_numbers(field):
    """The numbers are times, but for an autoregression over positions like these their ranks are."""
    placed, positions = place(field, np.array([4.0, 1.0, 4.0, 11.0]))
    assert positions.values.tolist() == [1.0, 4.0, 11.0]
    times = [0.0, 1.0, 2.0] if isinstance(field, AR1) else [1.0, 4.0, 11.0]
    assert placed.positions.tolist() == positions.times.tolist() == times
    assert placed.place.tolist() == [1, 0, 1, 2]
    assert placed.loading.tolist() == [1.0] * 4
    assert positions.find(np.array([11.0, 2.0, -5.0, 1.0, 99.0])).tolist() == [2, -1, -1, 0, -1]
    assert positions.times_of(np.array([4.0, 1.0])).tolist() == [times[1], times[0]]


def test_times_between_and_beyond_the_known_ones():
    """Fractions of a step inside; outside a step is the median distance."""
    positions = positions_of(AR1("pos"), np.array([0.0, 1.0, 11.0, 13.0]))
    assert positions.times_of(np.array([0.5, 6.0, 13.0, 14.0, -4.0])) == pytest.approx([0.5, 1.5, 3.0, 3.5, -2.0])
    same = positions_of(OU("pos"), np.array([0.0, 1.0, 11.0, 13.0]))
    assert same.times_of(np.array([0.5, 14.0, -4.0])).tolist() == [0.5, 14.0, -4.0]
    one = positions_of(AR1("pos"), np.array([7.0, 7.0]))
    assert one.times_of(np.array([7.0, 9.0])).tolist() == [0.0, 2.0]
    new = place_new(positions, np.array([1.0, 6.0, 20.0]), np.array([2.0, 3.0, 4.0]))
    assert new.place.tolist() == [1, -1, -1]
    assert new.times == pytest.approx([1.0, 1.5, 6.5])
    assert new.loading.tolist() == [2.0, 3.0, 4.0]
    assert new.part(slice(1, 3)).place.tolist() == [-1, -1]


def test_steps_by_rank_not_by_distance():
    """Between neighbours there is one step, however far apart they are."""
    field = AR1("pos")
    placed, positions = place(field, np.array([0.0, 1.0, 11.0]))
    new = place_new(positions, np.array([6.0]))
    bridge = field.bridge(np.array([0.0, 2.0]), placed.positions, new.times)
    root = math.sqrt(math.tanh(1.0))
    weight = root * (1 - root**2) / (1 - root**4)
    assert bridge.left_weight == pytest.approx([weight])
    assert bridge.right_weight == pytest.approx([weight])
    assert bridge.variance == pytest.approx([1 - 2 * weight * root])


@pytest.mark.parametrize(
    ("positions", "step", "times"),
    [
        ([3.0, 4.0, 6.0, 7.0], None, [0, 1, 3, 4]),  # a series with a gap
        ([0.1, 0.2, 0.4, 0.5, 0.9], None, [0, 1, 3, 4, 8]),
        ([0.0, 1.0, 2.5], None, [0, 1, 2]),  # not whole numbers of steps
        ([0.0, 1.0, 3.0], None, [0, 1, 3]),
        ([0.0, 1.0, 9.0], None, [0, 1, 2]),  # few of the places of a series
        ([0.0, 1.0, 9.0], 1, [0, 1, 9]),
        ([0.0, 14.0, 21.0], 7.0, [0, 2, 3]),
        ([3.0, 4.0, 6.0, 7.0], "rank", [0, 1, 2, 3]),
        ([5.0], None, [0]),
        ([5.0], 2.0, [0]),
    ],
)
def test_steps_of_an_autoregression(positions, step, times):
    assert AR1("pos", step=step).times(np.array(positions)) == pytest.approx(times, abs=1e-12)


@pytest.mark.parametrize("positions", [[0.0, 1.0, 2.5], [0.0, 0.2, 1.0]])
def test_positions_between_steps(positions):
    with pytest.raises(DataError, match=r"AR1\(pos\) has steps of 1 from 0; got position (2.5|0.2).*Use OU"):
        AR1("pos", step=1.0).times(np.array(positions))


@pytest.mark.parametrize("step", ["order", 0.0, -1.0, math.nan])
def test_what_a_step_may_be(step):
    with pytest.raises(SettingError, match="step must be"):
        AR1("pos", step=step)


@pytest.mark.parametrize("logit", [-3.0, 0.0, 1e-9, 2.0, 12.0])
def test_a_gap_is_as_many_steps_as_are_missing(logit):
    """The precision over what is left is that of the whole series, the rest integrated out; so is the bridge."""
    field, hyperparameters = AR1("pos"), np.array([0.3, logit])
    left = np.array([0.0, 1.0, 4.0, 5.0, 6.0, 8.0])
    whole = math.exp(-0.3) * math.tanh(0.5 * logit) ** np.abs(np.subtract.outer(np.arange(9.0), np.arange(9.0)))
    rows = left.astype(int)
    covariance = whole[np.ix_(rows, rows)]
    band = field.precision(hyperparameters, field.times(left))
    precision = np.diag(band[:, 0]) + np.diag(band[1:, 1], 1) + np.diag(band[1:, 1], -1)
    assert precision @ covariance == pytest.approx(np.eye(6), abs=1e-9)
    missing = [2, 3, 7]
    weights = np.linalg.solve(covariance, whole[np.ix_(rows, missing)]).T
    variances = np.diag(whole)[missing] - np.sum(weights * whole[np.ix_(missing, rows)], axis=1)
    bridge = field.bridge(hyperparameters, field.times(left), np.array(missing, dtype=float))
    ours = np.zeros((3, 6))
    np.add.at(ours, (range(3), bridge.left), bridge.left_weight)
    np.add.at(ours, (range(3), bridge.right), bridge.right_weight)
    assert ours == pytest.approx(weights, abs=1e-6)
    assert bridge.variance == pytest.approx(variances, rel=1e-6)


@pytest.mark.parametrize(
    ("known", "wanted", "places"),
    [
        (["b", "a", "c"], ["a", "d", "c"], [0, -1, 2]),
        (["b", "a", "c"], ["a much longer one", "b"], [-1, 1]),
        ([3, 1, 2], [2, 7], [1, -1]),
        (["1", "2", "a"], ["1", "2"], [0, 1]),  # texts that are all numbers
        (["1", "01"], ["01", "1.0"], [0, -1]),
    ],
)
@pytest.mark.parametrize("field", [Grouped("pos"), IID("pos")], ids=describe)
def test_labels(field, known, wanted, places):
    positions = positions_of(field, column_values(field, np.array(known, dtype=object)))
    values = column_values(field, np.array(wanted, dtype=object))
    assert positions.find(values).tolist() == places
    times = positions.times_of(values)  # those of others differ from each other
    unknown = times[np.array(places) == -1]
    assert len(set(unknown)) == len({v for v, p in zip(wanted, places, strict=True) if p == -1})


def test_the_same_new_label_is_at_the_same_time():
    positions = positions_of(Grouped("pos"), np.array(["a", "b"]))
    times = positions.times_of(np.array(["x", "a", "y", "x"]))
    assert times[0] == times[3] != times[2]


@pytest.mark.parametrize("field", EVERY, ids=describe)
@pytest.mark.parametrize("missing", [None, math.nan, np.float64("nan")])
def test_missing_values(field, missing):
    for dtype in (object, float):
        with pytest.raises(DataError, match=rf"{type(field).__name__}\(pos\) needs a .*row 1.* Leave such rows out"):
            column_values(field, np.array([1.0, missing, 2.0], dtype=dtype))
    if field.by_label:
        with pytest.raises(DataError, match=r"row 2 has none"):
            column_values(field, np.array(["a", "b", missing], dtype=object))


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinite_values(value):
    with pytest.raises(DataError, match=r"OU\(pos\) needs a finite value in every row; got -?inf in row 2"):
        column_values(OU("pos"), [0.0, 1.0, value])


def test_values_that_are_no_numbers():
    for field in (AR1("pos"), RW1("pos"), OU("pos")):
        with pytest.raises(DataError, match=r"along positions, which must be numbers; got 'north'.*use Grouped"):
            column_values(field, np.array([1.0, "north", "south"], dtype=object))
    with pytest.raises(DataError, match=r"slope of Grouped\(site, slope=z\) must be numbers; got 'much'"):
        column_values(Grouped("site", slope="z"), np.array(["much", "little"]), is_slope=True)
    with pytest.raises(DataError, match=r"one value for each row; got shape \(2, 2\)"):
        column_values(AR1("pos"), np.eye(2))
    assert column_values(AR1("pos"), np.array([3, 1])).tolist() == [3.0, 1.0]
    assert column_values(Grouped("pos"), np.array([True, False])).tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("latent", "words"),
    [
        ("AR1", r"list of components; got 'AR1'"),
        (3, r"list of components; got 3"),
        ([AR1], r"must have components"),
        ([AR1("t"), "RW1"], r"must have components.*got 'RW1'"),
        ([AR1("t"), RW1("t"), AR1("t")], r"AR1\(t\) twice"),
        ([Grouped("t", slope="z"), Grouped("t", slope="z")], r"Grouped\(t, slope=z\) twice"),
    ],
)
def test_components_that_are_refused(latent, words):
    with pytest.raises(SettingError, match=words):
        check_fields(latent)


def test_components():
    assert check_fields(AR1("t")) == (AR1("t"),)
    assert check_fields([AR1("t"), RW1("t")]) == (AR1("t"), RW1("t"))
    assert check_fields(()) == ()


Y = np.array([1.0, 3.0, 0.0, 2.0, 5.0, 1.0])


@pytest.mark.parametrize(
    "positions", [np.arange(6), {"pos": range(6)}, {"pos": np.arange(6.0)}, np.column_stack([np.arange(6), Y])]
)
def test_columns_of_one_model(positions):
    column = 0 if getattr(positions, "ndim", 1) == 2 else "pos"
    found = log_marginal(Y, family="poisson", latent=[OU(column)], positions=positions)
    assert found == log_marginal(Y, family="poisson", latent=OU("pos"), positions={"pos": np.arange(6)})


@pytest.mark.parametrize(
    ("positions", "latent", "words"),
    [
        (None, [AR1("pos")], r"must have the column 'pos' of AR1; got None"),
        ({"t": Y}, [AR1("pos")], r"no column 'pos'; it has t"),
        (np.eye(6), [AR1("pos")], r"6 columns, and none of them is 'pos'"),
        (np.eye(6), [AR1(6)], r"6 columns, and none of them is 6"),
        (Y[:5], [AR1("pos")], r"same number of rows; got 5 and 6"),
        ({"site": list("aabbcc"), "z": Y[:4]}, [Grouped("site", slope="z")], r"got 4 and 6"),
    ],
)
def test_columns_that_are_refused(positions, latent, words):
    with pytest.raises(DataError, match=words):
        log_marginal(Y, family="poisson", latent=latent, positions=positions)
