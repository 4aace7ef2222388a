"""The page on the paper's examples shows what the runs are."""

import json

from benchmarks.paper.page import PAGE, filled


def test_tables_of_the_page_are_those_of_the_runs():
    text = PAGE.read_text()
    assert text.count("<!-- table ") == text.count("<!-- end -->") >= 8
    assert filled(text) == text, "python -m benchmarks.paper.page writes the tables"


def test_words_around_a_table_stay(tmp_path):
    line = {"group": "", "method": "GR", "settings": "library", "seed": 0, "seconds": 1.0, "cpu": 1.0}
    (tmp_path / "abalone").mkdir()
    outcome = {"RMSE": 2.0, "MAE": 1.5, "CORR": 0.7}
    (tmp_path / "abalone" / "GR--library.jsonl").write_text(json.dumps(line | {"outcome": outcome}) + "\n")
    text = filled("Before.\n<!-- table abalone -->\nanything\n<!-- end -->\nAfter.\n", tmp_path)
    assert text.startswith("Before.\n<!-- table abalone -->\n")
    assert text.endswith("<!-- end -->\nAfter.\n")
    assert "| GR | library | 1 | 2.0000 | 2.0801" in text
    assert "anything" not in text
