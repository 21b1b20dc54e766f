"""`partita report`: a page of a step that was saved, or recorded by TensorFlow, beside another one if asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ....devices.timing import Timeline
from ....devices.timing.timeline_file import SUFFIX as SAVED
from ....devices.timing.tracing.recorded_timeline import recorded_timeline
from ....devices.units import format_ns
from ...report.page.html import write_page
from ...report.page.page_data import Document, Page
from ...report.page.report import SUFFIX, checked_path
from ...report.page.step_page import step_page
from ..failure import configuring
from ..outputs import check_outputs
from ..screen import Screen

_ZIP = b"PK"


def report(file: Path, other: Path | None, out: Path | None, command: str, as_json: bool) -> None:
    """Writes the page of `file`, by default beside it, and prints where it is; ConfigurationError for a wrong file."""
    screen = Screen()
    target = file.with_suffix(SUFFIX) if out is None else out
    with configuring("--out"):
        checked_path(target)
    check_outputs({"--out": target}, {"FILE": file, "--compare": other})
    timeline = _read(file, "FILE", screen)
    compared = None if other is None else _read(other, "--compare", screen)
    page = step_page(
        timeline,
        title=file.name if other is None else f"{file.name} beside {other.name}",
        name=file.name,
        compare=compared,
        compare_name="" if other is None else other.name,
        command=command,
    )
    with screen.working(f"writing {target.name}"), configuring("--out"):
        write_page(page, target)
    if as_json:
        screen.json(_document(target, page))
    else:
        for line in _lines(target, page):
            screen.line(line)


def _read(path: Path, flag: str, screen: Screen) -> Timeline:
    """The timeline of a file: one that was saved, whatever its name is now, or that of a RunMetadata."""
    with screen.working(f"reading {path.name}"), configuring(flag):
        with path.open("rb") as file:
            is_saved = path.suffix == SAVED or file.read(len(_ZIP)) == _ZIP
        return Timeline.load(path) if is_saved else recorded_timeline(path)


def _lines(target: Path, page: Page) -> Iterator[str]:
    """Where the page is, its runs, what it lacks, and how they compare."""
    yield f"report: {target}, to be opened in a browser"
    for run in page.runs:
        yield f"{run['name']}: {format_ns(run['makespan_ns'])}, {run['events']:,} events ({run['basis']})"
    for missing in page.missing:
        yield f"note: {page.runs[missing['run']]['name']}: {missing['panel']}: {missing['why']}"
    if page.comparison is not None:
        totals = {key.removesuffix("_ns"): value for key, value in page.comparison["totals"].items()}
        same = totals.pop("same")
        changes = ", ".join(f"{what} {format_ns(ns)}" for what, ns in totals.items())
        yield f"nodes of {page.runs[1]['name']} beside those of {page.runs[0]['name']}: {changes}, the same {same:,}"


def _document(target: Path, page: Page) -> Document:
    """The object that `report --json` prints."""
    comparison = page.comparison
    return {
        "report": str(target),
        "runs": [
            {
                "name": run["name"],
                "makespan_ns": run["makespan_ns"],
                "low_ns": run["interval"][0] if run["interval"] else None,
                "high_ns": run["interval"][1] if run["interval"] else None,
                "times": run["basis"],
                "events": run["events"],
                "devices": len(run["devices"]),
                "missing": [missing for missing in page.missing if missing["run"] == number],
            }
            for number, run in enumerate(page.runs)
        ],
        "comparison": None if comparison is None else comparison["totals"],
    }
