"""Reports as files: the page of a step, or of a table, written whole or not at all.

write_report(timeline, "step.html")
write_report(timeline, "both.html", compare=recorded_timeline("run_metadata.pb"), compare_name="measured")
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ....devices.timing import Timeline
from ....errors import InvalidArgumentError
from .html import write_page
from .step_page import step_page
from .table_page import Cell, TableColumn, table_page

SUFFIX = ".html"


def write_report(
    timeline: Timeline,
    path: str | Path,
    *,
    compare: Timeline | None = None,
    title: str = "",
    name: str = "this step",
    compare_name: str = "the other step",
    subtitle: str = "",
    command: str = "",
) -> None:
    """Writes the page of a timeline as one HTML file that needs no network, beside another one if `compare` is given.

    The title is that of the file unless given; `name` and `compare_name` are what the page calls the two runs, and
    `command` is what made them. Raises InvalidArgumentError for a path that does not end in .html, OSError where the
    file cannot be written.
    """
    target = checked_path(path)
    page = step_page(
        timeline,
        title=title or target.stem,
        name=name,
        compare=compare,
        compare_name=compare_name,
        subtitle=subtitle,
        command=command,
    )
    write_page(page, target)


def write_table_report(
    columns: Sequence[TableColumn],
    rows: Sequence[Sequence[Cell]],
    path: str | Path,
    *,
    axes: Sequence[str],
    values: Sequence[str],
    title: str = "",
    subtitle: str = "",
    command: str = "",
) -> None:
    """Writes the page of a table, with a chart of one of `values` over one of `axes`.

    Raises as `table_page` and `write_report`.
    """
    target = checked_path(path)
    page = table_page(title or target.stem, columns, rows, axes=axes, values=values, subtitle=subtitle, command=command)
    write_page(page, target)


def checked_path(path: str | Path) -> Path:
    """The path of a report; InvalidArgumentError unless it ends in .html, as browsers go by the suffix."""
    target = Path(path)
    if target.suffix.lower() != SUFFIX:
        raise InvalidArgumentError(
            f"a report is one HTML file; {str(path)!r} does not end in {SUFFIX}: give such a name"
        )
    return target
