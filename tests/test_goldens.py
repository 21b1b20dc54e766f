"""Golden texts are compared without their indentation, and written where they stand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import goldens
from tests.goldens import assert_file, assert_text, with_texts


@pytest.fixture(autouse=True)
def _comparing(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests are not rewritten."""
    monkeypatch.setattr(goldens, "_IS_WRITING", False)


def test_a_text_is_compared_without_its_indentation() -> None:
    """Lines may be indented against each other, and empty."""
    assert_text(
        "a\n  b\n\nc",
        """
        a
          b

        c
        """,
    )
    with pytest.raises(AssertionError):
        assert_text("a\nb", "a\n b")


def test_a_text_is_compared_with_a_file(tmp_path: Path) -> None:
    """The file ends with a newline that the text lacks."""
    file = tmp_path / "text.txt"
    file.write_text("a\nb\n")
    assert_file("a\nb", file)
    with pytest.raises(AssertionError):
        assert_file("a\nc", file)


def test_texts_are_written_where_they_are_expected() -> None:
    """Only the texts of the calls at the given lines change; what is written is compared equal."""
    long = 'x = "\\n"\n\n  y'
    source = """\
if True:
    assert_text("é", "")
    assert_text(1, "1")
    # next
    assert_text(2, '''
    two
    ''')
"""
    written = with_texts(source, {(2, 4): long, (5, 4): "z"})
    expected: list[str] = []
    exec(written, {"assert_text": lambda _actual, text: expected.append(text)})
    for text, actual in zip(expected, [long, "1", "z"], strict=True):
        assert_text(actual, text)
    assert '    assert_text(1, "1")\n    # next\n' in written
