"""Text files as tables: delimiters, encodings, lines, and what is wrong with a file."""

import gzip
import sys
from io import BytesIO, TextIOWrapper

import pytest

from bgnlm.cli.tables import read_table
from bgnlm.cli.text_files import read_text_file
from bgnlm.errors import DataError


def _file(tmp_path, content, name="data.csv"):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


@pytest.mark.parametrize(
    ("name", "content", "delimiter"),
    [
        ("data.csv", "a,b\n1,2\n3,4\n", ","),
        ("data.csv", "a;b\n1;2\n3;4\n", ";"),
        ("data.csv", "a\tb\n1\t2\n3\t4\n", "\t"),
        ("data.txt", "a,b\r\n1,2\r\n3,4\r\n", ","),
        ("data.tsv", "a\tb\n1\t2\n3\t4\n", "\t"),
        ("data.TAB", "a\tb\n1\t2\n3\t4", "\t"),
        ("data.csv", "\ufeffa,b\n1,2\n3,4\n", ","),
        ("data.csv", "\n a , b \n\n1,2\n\n3,4\n\n", ","),
        ("data.csv", '"a";"b"\n"1";"2"\n3;4\n', ";"),
    ],
)
def test_delimiters_line_ends_marks_and_blank_lines(tmp_path, name, content, delimiter):
    file = read_text_file(_file(tmp_path, content, name))
    assert file.columns == {"a": ["1", "3"], "b": ["2", "4"]}
    assert file.delimiter == delimiter


def test_a_compressed_file(tmp_path):
    path = _file(tmp_path, gzip.compress(b"a,b\n1,2\n"), "data.csv.gz")
    assert read_text_file(path).columns == {"a": ["1"], "b": ["2"]}


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"a,b\n1,2\n")))
    assert read_text_file("-").columns == {"a": ["1"], "b": ["2"]}


def test_quoted_delimiters_do_not_count(tmp_path):
    file = read_text_file(_file(tmp_path, '"a, b, c";d\n1;2\n'))
    assert list(file.columns) == ["a, b, c", "d"]


def test_a_row_has_the_line_in_which_it_begins(tmp_path):
    file = read_text_file(_file(tmp_path, 'a,b\n1,"two\nlines"\n\n3,4\n'))
    assert file.lines == [2, 5]
    assert file.columns["b"] == ["two\nlines", "4"]


def test_columns_without_a_name_are_left_out(tmp_path):
    file = read_text_file(_file(tmp_path, ",a,\n1,2,\n2,3,\n"))
    assert file.columns == {"a": ["2", "3"]}
    assert file.n_unnamed == 2


BROKEN = {
    "empty": (b"", "data.csv is empty. The first line must have the names"),
    "blank": (b"\n\n  \n", "data.csv is empty"),
    "no rows": (b"a,b\n", "data.csv has names of columns in line 1 and no rows"),
    "short line": (b"a,b,c\n1,2,3\n4,5\n", "data.csv, line 3 has 2 fields, the header has 3 (delimiter: comma)"),
    "long line": (b"a;b\n1;2\n\n1;2;3\n", "data.csv, line 4 has 3 fields, the header has 2 (delimiter: semicolon)"),
    "same names": (b"a,b,a\n1,2,3\n", "data.csv, line 1: columns must have different names; got twice: a"),
    "no names": (b",\n1,2\n", "data.csv, line 1: no column has a name"),
    "open quote": (b'a,b\n1,2\n"3,4\n5,6\n', "data.csv, line 3: unexpected end of data. Check the quotes"),
    "long cell": (b"a\n" + b"x" * 200_000 + b"\n", "data.csv, line 2: field larger than field limit"),
    "latin": ("a,b\n1,Malmö\n".encode("latin1"), "must be text in UTF-8; line 2 has the byte 0xf6"),
    "zeros": (b"a,b\n1,\x00\n", "data.csv is no text table: line 2 has a zero byte"),
    "utf-16": ("a,b\n1,2\n".encode("utf-16"), "in UTF-16. Save it as UTF-8"),
    "parquet": (b"PAR1\x00\x01", "a Parquet file. Give it the ending .parquet"),
    "spreadsheet": (b"PK\x03\x04\x00", "a zip archive or a spreadsheet. Export the table as CSV"),
    "gzip": (gzip.compress(b"a\n1\n"), "compressed by gzip. Give it the ending .gz"),
}


@pytest.mark.parametrize(("content", "message"), BROKEN.values(), ids=BROKEN)
def test_what_is_wrong_is_said_with_its_line(tmp_path, content, message):
    with pytest.raises(DataError) as caught:
        read_table(_file(tmp_path, content))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"a,b\n1,2\n", gzip.compress(b"a,b\n1,2\n" * 1000, mtime=0)[:-20]], ids=["plain", "cut off"]
)
def test_a_broken_compressed_file(tmp_path, content):
    with pytest.raises(DataError, match="is no whole gzip file"):
        read_table(_file(tmp_path, content, "data.csv.gz"))
