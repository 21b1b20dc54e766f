"""The page of a step: one timeline, or two side by side."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from ....collector import collector_paused
from ....devices.timing import Timeline
from .comparison import comparison
from .headline import compared_headline, headline
from .html import licences
from .page_data import Document, Page
from .run_record import run_record

FORMAT = 1
"""of the document, whose keys docs/cli.md does not promise: only the script of the same page reads it"""


@collector_paused()  # a million names and a path of many events: all of them stay
def step_page(
    timeline: Timeline,
    *,
    title: str,
    name: str = "this step",
    compare: Timeline | None = None,
    compare_name: str = "the other step",
    subtitle: str = "",
    command: str = "",
) -> Page:
    """The page of a timeline, beside another one if `compare` is given; names are those of the two runs."""
    runs = [run_record(timeline, name, 0)]
    figures = headline(timeline, runs[0].document)
    if compare is not None:
        runs.append(run_record(compare, compare_name, 1))
        figures.insert(1, compared_headline(timeline, compare, compare_name))
    document = {
        **common_document("step", title, subtitle, command),
        "headline": figures,
        "missing": [missing.record(number) for number, run in enumerate(runs) for missing in run.missing],
        "runs": [run.document for run in runs],
        "comparison": None if compare is None else comparison(timeline, compare, (name, compare_name)),
    }
    return Page(document, {name: values for run in runs for name, values in run.arrays.items()})


def common_document(kind: str, title: str, subtitle: str = "", command: str = "") -> Document:
    """What the documents of all pages have, with nothing in it."""
    return {
        "format": FORMAT,
        "kind": kind,
        "title": title,
        "subtitle": subtitle,
        "version": _version(),
        "command": command,
        "headline": [],
        "missing": [],
        "runs": [],
        "comparison": None,
        "plans": None,
        "table": None,
        "licences": licences(),
    }


def _version() -> str:
    try:
        return version("partita")
    except PackageNotFoundError:  # a checkout on the path
        return ""
