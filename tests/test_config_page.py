"""docs/config.md is up to date with its table."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
TOOL = CHECKOUT / "tools" / "make_config_table.py"


@pytest.mark.skipif(not TOOL.exists(), reason="tools are not part of the distribution")
def test_the_page_is_up_to_date() -> None:
    """If not: python tools/make_config_table.py"""
    spec = importlib.util.spec_from_file_location("make_config_table", TOOL)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    page = tool.page()
    assert page == (CHECKOUT / "docs" / "config.md").read_text()
    assert page.count("| `") > 120
