"""What a page holds: a document for JSON, and arrays that the document refers to by name.

{"kind": "step", "runs": [{"critical_path": "0/critical_path", ...}]}        {"0/critical_path": [0, 4, 9]}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ....devices.timing.saved.archive import Column

Document: TypeAlias = dict[str, Any]  # Any: JSON
"""texts, numbers, lists and documents, by key"""


@dataclass(frozen=True, slots=True)
class Page:
    """A page before it is encoded."""

    document: Document
    arrays: Mapping[str, Column]

    @property
    def title(self) -> str:
        """What the page is called."""
        return str(self.document["title"])

    @property
    def runs(self) -> list[Document]:
        """The documents of its runs."""
        return list(self.document["runs"])

    @property
    def missing(self) -> list[Document]:
        """What its runs have no data for: the number of the run, the panel, and why."""
        return list(self.document["missing"])

    @property
    def comparison(self) -> Document | None:
        """How its two runs compare; None of a page of one."""
        compared: Document | None = self.document["comparison"]
        return compared


@dataclass(slots=True)
class RunArrays:
    """The arrays of one run of a page; their names begin with `prefix`, "0/" for the first run."""

    prefix: str
    by_name: dict[str, Column] = field(default_factory=dict)

    def add(self, name: str, values: Column) -> str:
        """Keeps an array; returns the name by which a document refers to it."""
        full = f"{self.prefix}{name}"
        self.by_name[full] = values
        return full


@dataclass(frozen=True, slots=True)
class Missing:
    """A panel that has no data, or not all, and why."""

    panel: str
    why: str

    def record(self, run: int) -> Document:
        """For the run of that number."""
        return {"panel": self.panel, "run": run, "why": self.why}
