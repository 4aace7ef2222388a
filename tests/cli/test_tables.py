"""Columns of tables: what they hold, what is missing, and messages with places."""

import sys
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from bgnlm.cli.checks import refuse_infinite, refuse_missing, rows_as_lines
from bgnlm.cli.tables import frame_of, read_table
from bgnlm.errors import DataError, MissingExtraError


def _table(tmp_path, content, missing=()):
    path = tmp_path / "data.csv"
    path.write_text(content)
    return read_table(str(path), missing)


def _column(tmp_path, cells, kind=None, missing=()):
    return _table(tmp_path, "x,end\n" + "".join(f"{cell},.\n" for cell in cells), missing).column("x", kind)


NAN = float("nan")


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        (["1", "-2.5", "3e2", ".5"], "numbers", [1.0, -2.5, 300.0, 0.5]),
        (["1", "", "NA", "NaN", "null", "None"], "numbers", [1.0, NAN, NAN, NAN, NAN, NAN]),
        (["", ""], "numbers", [NAN, NAN]),
        (["inf", "1"], "numbers", [np.inf, 1.0]),
        (["true", "False", "TRUE", ""], "booleans", [True, False, True, None]),
        (["red", " blue", "NA", "none"], "texts", ["red", "blue", None, "none"]),
        (["1_000", "2"], "texts", ["1_000", "2"]),
        (["yes", "no"], "texts", ["yes", "no"]),
        (["1"] * 8 + ["a"] * 2, "texts", ["1"] * 8 + ["a"] * 2),
    ],
)
def test_what_cells_look_like(tmp_path, cells, kind, values):
    column = _column(tmp_path, cells)
    assert column.kind == kind
    np.testing.assert_array_equal(column.values, np.array(values, dtype=column.values.dtype))


@pytest.mark.parametrize("n_numbers", [9, 19])
def test_a_mistake_in_a_column_of_numbers_is_not_a_category(tmp_path, n_numbers):
    with pytest.raises(DataError) as caught:
        _column(tmp_path, ["1.5"] * n_numbers + ["1.5x"])
    message = str(caught.value)
    assert (
        f"data.csv, line {n_numbers + 2}, column 'x': got '1.5x', but the other cells of the column are numbers"
        in message
    )
    assert "--na '1.5x'" in message
    assert "--categories x" in message


def test_texts_that_stand_for_missing_values(tmp_path):
    column = _column(tmp_path, ["1.5"] * 19 + ["?"], missing=["?"])
    assert column.kind == "numbers"
    assert column.missing.tolist() == [False] * 19 + [True]


def test_a_column_can_be_read_as_something_else(tmp_path):
    assert _column(tmp_path, ["1", "2"], "texts").values.tolist() == ["1", "2"]
    assert _column(tmp_path, ["1", "0", "true", ""], "booleans").values.tolist() == [True, False, True, None]
    with pytest.raises(DataError, match=r"line 3, column 'x': got 'b', but a number is needed"):
        _column(tmp_path, ["1", "b"], "numbers")
    with pytest.raises(DataError, match=r"line 2, column 'x': got '2', but true or false is needed"):
        _column(tmp_path, ["2"], "booleans")


def test_decimal_commas_between_semicolons(tmp_path):
    table = _table(tmp_path, "a;b;c\n1,5;2;x\n2,25;;y\n")
    assert table.column("a").values.tolist() == [1.5, 2.25]
    assert table.column("b").values[0] == 2.0
    assert table.column("c").kind == "texts"


def test_decimal_points_between_semicolons(tmp_path):
    table = _table(tmp_path, "a;b\n1.5;1,2\n2.25;z\n3.5;w\n")
    assert table.column("a").values.tolist() == [1.5, 2.25, 3.5]
    assert table.column("b").kind == "texts"


def test_a_mistake_among_decimal_commas(tmp_path):
    table = _table(tmp_path, "a;b\n" + "1,5;2\n" * 19 + "1,5x;2\n")
    with pytest.raises(DataError, match=r"line 21, column 'a': got '1,5x'"):
        table.column("a")


def test_points_and_commas_in_one_file_are_refused(tmp_path):
    table = _table(tmp_path, "a;b\n1,5;1.234\n2,5;2.345\n3,5;17\n4,5;18\n")
    assert table.column("a").values[0] == 1.5
    with pytest.raises(DataError, match=r"line 2, column 'b': got '1.234' with a point, but other numbers"):
        table.column("b")


def test_names_that_were_meant(tmp_path):
    table = _table(tmp_path, "Weight,height,age\n1,2,3\n")
    with pytest.raises(DataError, match=r"has no column 'weigth' \(--target\). Did you mean 'Weight'"):
        table.require(["weigth"], "--target")
    with pytest.raises(DataError, match=r"It has 'Weight', 'height', 'age'\."):
        table.require(["zzz"], "--target")


def test_missing_and_infinite_cells_have_a_place(tmp_path):
    table = _table(tmp_path, "a,b\n1,x\n2,\n\ninf,y\n,z\n")
    columns = [table.column("a"), table.column("b")]
    with pytest.raises(DataError) as caught:
        refuse_missing(table, columns, "Fill it.")
    assert "data.csv, line 3, column 'b': the value is missing (one of 2 missing values in 2 columns). Fill it." in str(
        caught.value
    )
    with pytest.raises(DataError, match=r"line 5, column 'a': got inf; numbers must be finite"):
        refuse_infinite(table, columns)


def test_rows_in_messages_become_lines(tmp_path):
    table = _table(tmp_path, "a\n1\n\n2\n")
    with pytest.raises(DataError, match=r"data.csv: y is negative in line 4\."), rows_as_lines(table):
        raise DataError("y is negative in row 1.")
    with pytest.raises(DataError, match=r"data.csv: no such row: row 17$"), rows_as_lines(table):
        raise DataError("no such row: row 17")


def test_arguments_in_messages_become_columns(tmp_path):
    table = _table(tmp_path, "a,offset\n1,2\n")

    def told(message):
        with pytest.raises(DataError) as caught, rows_as_lines(table, target="a", weights=None, offset="b"):
            raise DataError(message)
        return str(caught.value).partition("data.csv: ")[2]

    assert told("y must be finite; got y.") == "column 'a' (--target) must be finite; got y."
    assert told("offset must be finite.") == "column 'b' (--offset) must be finite."
    assert told("column offset must be finite.") == "column offset must be finite."
    assert told("yes") == "yes"


def test_a_frame_of_columns(tmp_path):
    table = _table(tmp_path, "a,b,c,d\n1,true,x,true\n,false,,\n")
    frame = frame_of([table.column(name) for name in table.names])
    assert list(frame.columns) == ["a", "b", "c", "d"]
    assert frame["a"].dtype == float
    assert frame["b"].dtype == bool
    assert frame["c"].isna().tolist() == [False, True]
    assert frame["d"].isna().tolist() == [False, True]


@pytest.mark.parametrize("name", ["data.csv", "data.parquet"])
def test_files_that_cannot_be_read(tmp_path, monkeypatch, name):
    path = tmp_path / name
    with pytest.raises(DataError, match="there is no file"):
        read_table(str(path))
    path.mkdir()
    with pytest.raises(DataError, match=r"is a folder\. Give a file in it"):
        read_table(str(path))

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(DataError, match="no permission"):
        read_table(str(path))


def _parquet(tmp_path, columns):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table(columns), path)
    return read_table(str(path))


def test_parquet_has_types(tmp_path):
    pa = pytest.importorskip("pyarrow")
    table = _parquet(
        tmp_path,
        {
            "number": [1.5, None, 2.5],
            "whole": [1, 2, None],
            "flag": [True, None, False],
            "text": ["x", None, "y"],
            "level": pa.array(["u", "v", "u"]).dictionary_encode(),
            "nothing": [None, None, None],
            "day": [date(2020, 1, 1)] * 3,
        },
    )
    assert len(table) == 3
    np.testing.assert_array_equal(table.column("number").values, [1.5, NAN, 2.5])
    np.testing.assert_array_equal(table.column("whole").values, [1.0, 2.0, NAN])
    assert table.column("flag").values.tolist() == [True, None, False]
    assert table.column("flag", "numbers").values.tolist()[::2] == [1.0, 0.0]
    assert table.column("text").values.tolist() == ["x", None, "y"]
    assert table.column("level").values.tolist() == ["u", "v", "u"]
    assert table.column("nothing").missing.all()
    assert table.column("whole", "texts").values.tolist() == ["1", "2", None]
    assert table.raw("text") == ["x", None, "y"]
    with pytest.raises(DataError, match=r"column 'day' holds date32\[day\]; .* --exclude day"):
        table.column("day")
    with pytest.raises(DataError, match=r"column 'text' must hold numbers; got string"):
        table.column("text", "numbers")
    with pytest.raises(
        DataError, match=r"data.parquet, row 1 \(the first is 0\), column 'number': the value is missing"
    ):
        refuse_missing(table, [table.column("number")], "")


def test_broken_and_empty_parquet_files(tmp_path):
    pytest.importorskip("pyarrow")
    with pytest.raises(DataError, match="has no rows"):
        _parquet(tmp_path, {"a": []})
    path = tmp_path / "data.parquet"
    path.write_bytes(b"PAR1 and something else")
    with pytest.raises(DataError, match="is no whole Parquet file"):
        read_table(str(path))


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    path = tmp_path / "data.parquet"
    path.write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r'pip install "bgnlm\[parquet\]"'):
        read_table(str(path))
