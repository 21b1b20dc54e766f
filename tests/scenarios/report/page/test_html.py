"""The file of a page: it asks for nothing, runs nothing but its own script, and is written whole or not at all."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import pytest

from partita.devices.timing import Timeline, TimelineEvent
from partita.errors import InvalidArgumentError
from partita.scenarios import TableColumn, write_report, write_table_report
from partita.scenarios.report.page.html import page_bytes
from partita.scenarios.report.page.step_page import step_page
from tests.scenarios.report.page.pages import read_page

TIMELINE = Timeline([TimelineEvent("/device:CPU:0", "compute", "a", "Neg", "compute", 0, 9)])
TEXT = page_bytes(step_page(TIMELINE, title="step")).decode("utf-8")


def sha256(content: str) -> str:
    """As a policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def test_the_policy_allows_the_script_and_the_style_of_the_page_alone() -> None:
    """By their hashes; without eval, without inline handlers and styles, without a request."""
    (policy,) = re.findall(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', TEXT)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    (script,) = re.findall(r"<script>(.*?)</script>", TEXT, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", TEXT, re.DOTALL)
    assert rules == {
        "default-src": "'none'",
        "script-src": sha256(script),
        "style-src": sha256(style),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_no_element_refers_to_anything_outside() -> None:
    """No address, no link, no frame, no source of a script; the policy comes before whatever it restricts."""
    markup = re.sub(r"<(script|style)[^>]*>.*?</\1>", "", TEXT, flags=re.DOTALL)
    assert not re.search(r"\b(src|href|action|data|poster)=", markup)
    assert TEXT.index("Content-Security-Policy") < TEXT.index("<style>") < TEXT.index("<script")


def test_the_page_says_what_made_it() -> None:
    """Its format, the version, and the licences of what is in its script."""
    document = read_page(TEXT.encode()).document
    assert (document["format"], document["kind"]) == (1, "step")
    assert document["version"]
    assert "uPlot" in document["licences"]


def test_a_report_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """What was there stays where no page can be made or written; nothing else is left in the folder."""
    path = tmp_path / "step.html"
    write_report(TIMELINE, path)
    before = path.read_bytes()
    assert read_page(before).document["title"] == "step"
    backwards = Timeline([TimelineEvent("d", "compute", "a", "Neg", "compute", 0, 9, cause=0)])
    with pytest.raises(InvalidArgumentError, match="cause"):
        write_report(backwards, path)
    with pytest.raises(FileNotFoundError):
        write_report(TIMELINE, tmp_path / "nowhere" / "step.html")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_report_ends_in_html(tmp_path: Path) -> None:
    """A browser would show another file as text."""
    with pytest.raises(InvalidArgumentError, match=r"does not end in \.html"):
        write_report(TIMELINE, tmp_path / "step.json")
    with pytest.raises(InvalidArgumentError, match=r"does not end in \.html"):
        write_table_report([TableColumn("a", "a")], [], tmp_path / "table", axes=["a"], values=[])
    assert not list(tmp_path.iterdir())
