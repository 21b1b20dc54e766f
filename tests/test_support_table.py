"""docs/support.md is up to date with the tables of ops."""

from __future__ import annotations

import importlib.util
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
TOOL = CHECKOUT / "tools" / "make_support_table.py"


def test_the_page_is_up_to_date() -> None:
    """If not: python tools/make_support_table.py"""
    spec = importlib.util.spec_from_file_location("make_support_table", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    page = tool.page()
    assert page == (CHECKOUT / "docs" / "support.md").read_text()
    assert page.count("| yes | yes |") > 500
