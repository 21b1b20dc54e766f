"""What a command writes of a simulated step: `--trace` and `--tensorboard` for other tools, `--report` for people.

Paths are checked before anything is read or run.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ....devices.timing import Timeline
from ....devices.timing.export import exporter_for, write_tensorboard
from ....graph import Graph
from ...report.page.report import SUFFIX, checked_path, write_report
from ..failure import ConfigurationError, configuring
from ..outputs import check_folder, check_outputs
from ..screen import Screen


@dataclass(frozen=True, slots=True)
class StepOutputs:
    """The paths of the flags, None for one that is not given; `command` is the line that a report shows."""

    trace: Path | None = None
    report: Path | None = None
    command: str = ""
    tensorboard: Path | None = None

    @property
    def paths(self) -> dict[str, Path | None]:
        """Files and folders by flag."""
        return {"--trace": self.trace, "--report": self.report, "--tensorboard": self.tensorboard}

    @property
    def given(self) -> list[str]:
        """The flags that are given."""
        return [flag for flag, path in self.paths.items() if path is not None]

    def check(self, inputs: Mapping[str, Path | None], others: Mapping[str, Path | None] | None = None) -> None:
        """ConfigurationError for a file that cannot be written, also among `others`, or has a suffix of something else.

        `inputs` are the files that the command reads.
        """
        check_outputs({**(others or {}), "--trace": self.trace, "--report": self.report}, inputs)
        if self.tensorboard is not None:
            check_folder(self.tensorboard, "--tensorboard")
        if self.trace is not None:
            _check_trace(self.trace)
        if self.report is not None:
            with configuring("--report"):
                checked_path(self.report)

    def write(self, timeline: Timeline, parts: Mapping[str, Graph], title: str, screen: Screen) -> None:
        """Writes the files of a step of partitions; ConfigurationError where one cannot be written."""
        if self.trace is not None:
            with screen.working(f"writing {self.trace.name}"), configuring("--trace"):
                exporter_for(self.trace).write(timeline, self.trace)
        if self.report is not None:
            with screen.working(f"writing {self.report.name}"), configuring("--report"):
                write_report(timeline, self.report, title=title, command=self.command)
        if self.tensorboard is not None:
            with screen.working(f"writing into {self.tensorboard.name}"), configuring("--tensorboard"):
                write_tensorboard(timeline, parts, self.tensorboard)

    def say(self, screen: Screen) -> None:
        """Prints where the report is, and how TensorBoard shows the step."""
        if self.report is not None:
            screen.line(f"report: {self.report}, to be opened in a browser")
        if self.tensorboard is not None:
            screen.line(f"for TensorBoard: tensorboard --logdir {shlex.quote(str(self.tensorboard))}")


def _check_trace(path: Path) -> None:
    """ConfigurationError when there is no exporter for files of that suffix."""
    if path.suffix.lower() == SUFFIX:
        raise ConfigurationError(
            f"--trace: {str(path)!r} would be a page, which is no trace but a report of all that is known of the step: "
            f"give --report {path}"
        )
    with configuring("--trace"):
        exporter_for(path)
