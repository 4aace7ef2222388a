import numpy as np
import pytest

from bgnlm.data import Table
from bgnlm.errors import DataError


def small_table() -> Table:
    return Table(names=("a", "b", "c"), values=[[1, 2, 3], [4, 5, 6]], labels=("x", "y"), description="d")


def test_columns_are_found_by_name():
    table = small_table()
    assert len(table) == 2
    np.testing.assert_array_equal(table.column("b"), [2.0, 5.0])
    with pytest.raises(DataError, match=r"no column 'z'. The columns are: a, b, c\."):
        table.column("z")


def test_select_keeps_order_labels_and_description():
    chosen = small_table().select(["c", "a"])
    assert (chosen.names, chosen.labels, chosen.description) == (("c", "a"), ("x", "y"), "d")
    np.testing.assert_array_equal(chosen.values, [[3.0, 1.0], [6.0, 4.0]])


def test_values_are_a_read_only_copy():
    given = np.ones((2, 1))
    table = Table(names=("a",), values=given)
    given[:] = 0
    assert table.values.dtype == np.float64
    assert (table.values == 1).all()
    with pytest.raises(ValueError, match="read-only"):
        table.column("a")[0] = 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"names": ("a",), "values": [1.0, 2.0]}, "rows and columns, got an array of 1 dim"),
        ({"names": ("a",), "values": [["one"]]}, "must be numbers"),
        ({"names": ("a", "b"), "values": [[1, 2], [3]]}, "rows of equal length"),
        ({"names": ("a", "b"), "values": [[1.0]]}, "1 columns, but there are 2 names"),
        ({"names": ("a", "a"), "values": [[1.0, 2.0]]}, "a came more than once"),
        ({"names": ("a",), "values": [[1.0]], "labels": ("x", "y")}, "1 rows, but there are 2 labels"),
    ],
)
def test_what_does_not_fit_together_is_refused(arguments, message):
    with pytest.raises(DataError, match=message):
        Table(**arguments)


def test_a_table_goes_where_an_array_or_a_data_frame_goes():
    import bgnlm

    table = bgnlm.datasets.load_solar_system()
    inputs = [name for name in table.names if name != "semi_major_axis"]
    models = bgnlm.enumerate_models(table.column("semi_major_axis"), table.select(inputs))
    assert models.names == tuple(inputs)
    backwards = table.select(inputs[::-1])
    assert np.allclose(models.predict(backwards), models.predict(table.select(inputs)))
