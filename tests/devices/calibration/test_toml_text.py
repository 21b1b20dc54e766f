"""Tables as TOML: what is written is read back, and a sourced number is one line."""

from __future__ import annotations

import tomllib
from typing import Any

from hypothesis import given, strategies as st

from partita.devices.calibration.toml_text import toml_text

SCALARS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=8),
    st.integers(-(2**40), 2**40),
    st.floats(allow_nan=False),
    st.booleans(),
)
TABLES = st.recursive(
    st.dictionaries(st.text("ab .\"'2-", max_size=4), st.one_of(SCALARS, st.lists(SCALARS, max_size=3)), max_size=4),
    lambda inner: st.dictionaries(st.text("ab .", max_size=3), st.one_of(SCALARS, inner), max_size=4),
    max_leaves=6,
)


@given(TABLES)
def test_what_is_written_is_read_back(table: dict[str, Any]) -> None:
    """Keys with spaces and dots, texts of several lines, empty and nested tables come back."""
    assert tomllib.loads(toml_text(table)) == table


def test_a_sourced_number_is_one_line() -> None:
    """Numbers stand below the header of their table, each on a line."""
    number = {"value": "2810 ns", "source": "gemm.csv", "date": "2026-11-23"}
    text = toml_text({"name": "mine", "fits": {"products": {"floor_ns": number, "rows": "1 2\n3 4\n"}}})
    assert text == (
        'name = "mine"\n\n[fits.products]\n'
        'floor_ns = { value = "2810 ns", source = "gemm.csv", date = "2026-11-23" }\n'
        'rows = """\n1 2\n3 4\n"""\n'
    )
