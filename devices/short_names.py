"""Short names of the devices of a cluster: unique, without the parts (job, replica, task) that all of them share.

one task               cpu:0                gpu:1
several tasks          task 0 cpu:0         task 1 gpu:0
several jobs as well   ps task 0 cpu:0      worker task 1 gpu:0
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ..graph.device_name import ParsedName, parse_full_name

_FULL = re.compile(r"/job:[A-Za-z0-9_]+/replica:[0-9]+/task:[0-9]+(?:/device:[A-Za-z0-9_]+:[0-9]+)?")
_HOST = "host"  # the task, if there is only one: its name is also that of the memory of its machine


class ShortNames:
    """The short names of some devices, by full name."""

    def __init__(self, names: Iterable[str]) -> None:
        parsed = {name: parse_full_name(name) for name in names}
        several = [len({getattr(p, part) for p in parsed.values()}) > 1 for part in ("job", "replica", "task")]
        tasks = {name: _task(p, *several) for name, p in parsed.items()}
        self.by_device: Mapping[str, str] = {
            name: f"{tasks[name]} {str(p.type).lower()}:{p.id}".lstrip() for name, p in parsed.items()
        }
        self._all = {p.task_name(): tasks[name] or _HOST for name, p in parsed.items()} | dict(self.by_device)

    def shorten(self, text: str) -> str:
        """Replaces the full names of these devices and their tasks in a text by short ones."""
        return _FULL.sub(lambda match: self._all.get(match[0], match[0]), text)


def _task(name: ParsedName, job: bool, replica: bool, task: bool) -> str:
    """The parts in which tasks differ; "" for the only task."""
    parts = [
        *([str(name.job)] if job else []),
        *([f"replica {name.replica}"] if replica else []),
        *([f"task {name.task}"] if task else []),
    ]
    return " ".join(parts)
