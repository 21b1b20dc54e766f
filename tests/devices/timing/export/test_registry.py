"""A file is written by the exporter of its suffix: built-in, of a program, or of an installed package."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from partita.devices.timing import Timeline, TimelineEvent
from partita.devices.timing.export import Exporter, exporter_for, register_exporter, registry
from partita.errors import AlreadyExistsError, InvalidArgumentError
from partita.graph import RunMetadata

TIMELINE = Timeline([TimelineEvent("/device:CPU:0", "compute", "a", "Neg", "compute", 0, 4000)])


@pytest.fixture(autouse=True)
def _no_exporter_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_EXPORTERS", dict(registry._EXPORTERS))


def written(name: str, folder: Path) -> Path:
    """The timeline in the file of that name."""
    exporter_for(folder / name).write(TIMELINE, folder / name)
    return folder / name


def test_ours(tmp_path: Path) -> None:
    """A Chrome trace, also without a suffix; a table; the message of traced runs."""
    for name in ("trace.json", "trace"):
        assert json.loads(written(name, tmp_path).read_text())["otherData"]["makespan_ns"] == 4000
    assert [row["node"] for row in csv.DictReader(written("trace.csv", tmp_path).read_text().splitlines())] == ["a"]
    statistics = RunMetadata.FromString(written("trace.pb", tmp_path).read_bytes()).step_stats
    assert statistics.dev_stats[0].node_stats[0].node_name == "a"


def test_one_that_a_program_registers(tmp_path: Path) -> None:
    """It is found by its suffix, once; a second one for the same suffix is refused."""

    def write(timeline: Timeline, path: Path) -> None:
        path.write_text(f"{timeline.makespan_ns} ns")

    mine = Exporter(".txt", "the makespan", write)
    register_exporter(mine)
    assert written("step.txt", tmp_path).read_text() == "4000 ns"
    with pytest.raises(AlreadyExistsError, match=r"'\.txt' \(the makespan\)"):
        register_exporter(mine)


@pytest.fixture
def installed(install: Callable[[str, str, str], Path]) -> None:
    """A package with an exporter that works, and one that cannot be imported."""
    install(
        "makespan_of",
        'def write(timeline, path):\n    """The makespan."""\n    path.write_text(f"{timeline.makespan_ns} ns")\n',
        "[partita.exporters]\n.ns = makespan_of:write\n.no = no_such_module:write\n",
    )


def test_one_of_an_installed_package(installed: None, tmp_path: Path) -> None:
    """Its entry point is loaded when its suffix is needed; its docstring describes the format."""
    assert written("step.ns", tmp_path).read_text() == "4000 ns"
    assert exporter_for(Path("x.ns")).format == "The makespan."


def test_what_cannot_be_written_is_named(installed: None) -> None:
    """The error for an unknown suffix lists the known ones; a package that cannot be imported is named."""
    with pytest.raises(InvalidArgumentError, match=r"'\.svg'; there are \.json \(Chrome trace\), \.csv .*\.ns"):
        exporter_for(Path("step.svg"))
    with pytest.raises(
        InvalidArgumentError, match=r"exporter of files '\.no', 'no_such_module:write', cannot be loaded"
    ):
        exporter_for(Path("step.no"))
