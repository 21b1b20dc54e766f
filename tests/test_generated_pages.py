"""Each page that a tool generates is what the tool makes of the code as it is now."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
TOOLS = CHECKOUT / "tools"


@pytest.mark.skipif(not TOOLS.exists(), reason="tools are not part of the distribution")
@pytest.mark.parametrize(
    ("name", "page", "row", "fewest"),
    [
        ("make_api_page", "api.md", "| `", 150),
        ("make_config_table", "config.md", "| `", 121),
        ("make_gallery", "gallery.md", "](gallery/", 12),
        ("make_model_fields", "model_fields.md", "| read |", 10),
        ("make_support_table", "support.md", "| yes | yes |", 501),
    ],
)
def test_a_page_is_up_to_date(name: str, page: str, row: str, fewest: int) -> None:
    """If not: python tools/NAME.py. An empty page would be up to date as well, so its rows are counted."""
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    text = tool.page()
    assert text == (CHECKOUT / "docs" / page).read_text()
    assert text.count(row) >= fewest
