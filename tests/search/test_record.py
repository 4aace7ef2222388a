"""Discoveries as bytes and back: nothing may change, to the last bit."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bgnlm.features import Input, Transform, get_transform, modify, multiply, parse, project, render
from bgnlm.search.chains import ChainResult
from bgnlm.search.classes import ClassChanges
from bgnlm.search.config import MoveProbabilities, SearchConfig
from bgnlm.search.gmjmcmc import Discovery, Workspace, advance, start_chain
from bgnlm.search.problem import define_problem
from bgnlm.search.record import decode, encode, pack, unpack
from bgnlm.search.visited import ModelRows, VisitedModels

MINE = Transform("mine", lambda x: x**3 - x)
OVER = Transform("over", lambda x, cut: (x > cut) * 1.0, quantile=0.3)
SINE = Transform("sin", lambda x: np.sin(2.0 * x))  # not the one that is registered
OWN = (MINE, OVER, SINE)
ODD_NAMES = [
    "x1",
    "sin",
    "a b",
    "`",
    "\\",
    "\n",
    "größe",
    "μ",
    "列",
    "😀",
    "\ud800",
    "\x00",
    "1e5",
    "-",
    "None",
    "x**2",
    '"',
]

DTYPES = [np.bool_, np.int32, np.int64, np.uint64, np.float64, ">f8", ">i4", "<u8"]
SHAPES = hnp.array_shapes(min_dims=1, max_dims=2, min_side=0, max_side=4)
ANY_ARRAY = st.sampled_from(DTYPES).flatmap(lambda dtype: hnp.arrays(dtype, SHAPES))
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
LOGARITHMS = st.floats(allow_nan=False)
INPUTS = st.builds(Input, st.sampled_from(ODD_NAMES) | st.text(min_size=1, max_size=5))


def larger_features(smaller):
    return st.one_of(
        st.builds(modify, st.sampled_from([MINE, SINE, get_transform("tanh")]), smaller),
        st.builds(lambda operand, cut: modify(OVER, operand, [cut]), smaller, NUMBERS),
        st.builds(lambda factors: multiply(*factors), st.lists(smaller, min_size=2, max_size=3)),
        st.builds(
            lambda pairs, intercept, cut: project(OVER, *zip(*pairs, strict=True), intercept, [cut]),
            st.lists(st.tuples(smaller, NUMBERS.filter(bool)), min_size=2, max_size=3, unique_by=lambda pair: pair[0]),
            NUMBERS,
            NUMBERS,
        ),
    )


FEATURES = st.recursive(INPUTS, larger_features, max_leaves=5)


def assert_same_array(here, there):
    assert here.shape == there.shape
    assert here.dtype == there.dtype.newbyteorder("=")
    assert here.tobytes() == there.astype(here.dtype).tobytes()


def assert_same(here, there):
    """Everything, seconds and types included."""
    for name in ("keys", "log_marginal", "starts", "members"):
        assert_same_array(getattr(here.models, name), getattr(there.models, name))
    for name in ("classes", "tally", "model"):
        assert_same_array(getattr(here, name), getattr(there, name))
    for name in ("numbers", "fingerprints", "costs"):
        assert_same_array(getattr(here.changes, name), getattr(there.changes, name))
    for name in ("log_discarded", "best_log_joint", "n_scored", "seconds", "random_state", "features"):
        assert getattr(here, name) == getattr(there, name), name
    assert here.changes.representatives == there.changes.representatives
    sides = [(*found.features, *found.changes.representatives) for found in (here, there)]
    assert all(one.same_functions(other) for one, other in zip(*sides, strict=True))


def there_and_back(found):
    return decode(encode(found, render), lambda text: parse(text, OWN))


def arrays(dtype, shape):
    return hnp.arrays(dtype, shape)


@st.composite
def discoveries(draw):
    n_models, n_features, n_changes = (draw(st.integers(0, 3)) for _ in range(3))
    sizes = draw(hnp.arrays(np.int64, n_models, elements=st.integers(0, 4)))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return Discovery(
        models=ModelRows(
            draw(arrays(np.uint64, n_models)),
            draw(hnp.arrays(np.float64, n_models, elements=LOGARITHMS)),
            starts,
            draw(arrays(np.int32, int(starts[-1]))),
        ),
        classes=draw(arrays(np.int64, n_features)),
        log_discarded=draw(LOGARITHMS),
        best_log_joint=draw(LOGARITHMS),
        n_scored=draw(st.integers(0, 2**40)),
        tally=draw(arrays(np.int64, (2, 7))),
        seconds=draw(st.floats(0.0, 1e9)),
        random_state={
            "bit_generator": "PCG64",
            "state": {"state": draw(st.integers(0, 2**128 - 1)), "inc": draw(st.integers(0, 2**128 - 1))},
            "has_uint32": draw(st.integers(0, 1)),
            "uinteger": draw(st.integers(0, 2**32 - 1)),
        },
        features=tuple(draw(FEATURES) for _ in range(n_features)),
        model=draw(arrays(np.bool_, n_features)),
        changes=ClassChanges(
            draw(arrays(np.int64, n_changes)),
            tuple(draw(FEATURES) for _ in range(n_changes)),
            draw(arrays(np.float64, (n_changes, 3))),
            draw(hnp.arrays(np.float64, n_changes, elements=LOGARITHMS)),
        ),
    )


@given(found=discoveries())
@settings(max_examples=60, deadline=None)
def test_any_discovery_comes_back(found):
    assert_same(there_and_back(found), found)


@given(
    st.dictionaries(st.text(max_size=4), ANY_ARRAY, max_size=4), st.dictionaries(st.text(), st.integers() | st.text())
)
@settings(max_examples=80, deadline=None)
def test_any_arrays_come_back(given_arrays, values):
    back_values, back = unpack(pack(values, given_arrays))
    assert back_values == values
    assert list(back) == list(given_arrays)
    for name, array in given_arrays.items():
        assert_same_array(back[name], array)
        assert back[name].flags.writeable
        assert back[name].dtype.isnative


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24.0).reshape(4, 6)[::2, 1::2],
        np.asfortranarray(np.arange(12).reshape(3, 4)),
        np.arange(5)[::-1],
        np.array([-np.inf, np.inf, -0.0, 5e-324, np.nan]),
        np.zeros((0, 3)),
        np.zeros((3, 0), np.int32),
        np.zeros(0, np.bool_),
        np.array([0, 2**64 - 1], np.uint64),
        np.arange(3, dtype=">i8"),
    ],
)
def test_arrays_of_any_layout(array):
    before = array.copy()
    _, back = unpack(pack({}, {"a": array, "b": array}))
    assert_same_array(back["a"], before)
    assert_same_array(back["b"], before)


def test_bytes_do_not_depend_on_the_machine():
    """Little-endian, as declared, whatever the order in memory."""
    big, little = (np.array([1, 2, 3], order + "i4") for order in "><")
    assert pack({}, {"a": big}) == pack({}, {"a": little})
    assert pack({}, {"a": big}).endswith(b"\n\x01\0\0\0\x02\0\0\0\x03\0\0\0")


@pytest.mark.parametrize("seed", [0, 1, 2**128])
def test_random_numbers_go_on_where_they_were(seed):
    rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
    rng.integers(10, size=3, dtype=np.uint32)  # leaves half of a number behind
    assert rng.bit_generator.state["has_uint32"]
    values, _ = unpack(pack({"state": rng.bit_generator.state}, {}))
    other = np.random.Generator(np.random.PCG64())
    other.bit_generator.state = values["state"]
    assert (other.integers(2**32, size=9, dtype=np.uint32) == rng.integers(2**32, size=9, dtype=np.uint32)).all()
    assert (other.random(9) == rng.random(9)).all()


@pytest.mark.parametrize("family", ["gaussian", "binomial"])
@pytest.mark.parametrize("names", [["x1", "x2", "x3"], ["sin", "a b`\n", "\ud800列"]])
def test_discoveries_of_a_chain(rng, family, names):
    """With projections, cut points and functions of one's own; what is read back makes the same chain."""
    X = rng.normal(size=(50, 3))
    y = X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=50)
    moves = MoveProbabilities(new_input=1, modification=3, multiplication=2, projection=4)
    problem = define_problem(
        y if family == "gaussian" else y > 0,
        X,
        family=family,
        names=names,
        transforms=OWN,
        config=SearchConfig(population_size=7, n_populations=6, n_candidates=40, moves=moves),
    )
    state = start_chain(problem, np.random.SeedSequence(2), Workspace(problem))
    one, other = (ChainResult(0, state, VisitedModels(10**6)) for _ in range(2))
    _, found = advance(problem, state, 6)
    for discovery in found:
        back = there_and_back(discovery)
        assert_same(back, discovery)
        assert one.absorb(discovery, problem.config) == other.absorb(back, problem.config)
    texts = " ".join(map(render, one.classes.representatives))
    assert all(name in texts for name in ("mine(", "sin(", "over(", " + ", "*"))
    assert one.visited.rows().log_marginal.tobytes() == other.visited.rows().log_marginal.tobytes()
    assert_same_array(other.costs, one.costs)


def test_a_record_is_a_line_of_json_and_arrays():
    head, body = pack({"a": 1, "text": "zeile\n"}, {"b": np.array([3], np.uint64)}).split(b"\n", 1)
    assert json.loads(head) == {"values": {"a": 1, "text": "zeile\n"}, "arrays": {"b": ["<u8", [1]]}}
    assert body == (3).to_bytes(8, "little")


@given(data=st.data(), found=discoveries())
@settings(max_examples=30, deadline=None)
def test_a_record_that_is_too_short_is_not_understood(data, found):
    """The digest of the journal comes first; this is what stands behind it."""
    whole = encode(found, render)
    body = whole.split(b"\n", 1)[1]
    n_missing = data.draw(st.integers(1, len(body)))  # the scalars are never missing, and they come last
    with pytest.raises((ValueError, KeyError)):
        decode(whole[:-n_missing], lambda text: parse(text, OWN))
