"""Workloads by name: graphs that are built from a few settings, built in, registered by a program, or installed.

    workload = find_workload("mlp")
    workload.settings()                              {"layers": int, "features": int, "gpus": int}, with their defaults
    workload.graph({"layers": "8"})                  a GraphDef

A workload is a function that takes settings by keyword, each with a type and mostly a default, and returns a graph, or
the `ModelStep` that `build_model` makes, which says what to feed, fetch and run. Types are int, float, str and bool;
`Split`; a class of models, which is read from a config.json or a list of sizes; and `Cluster`, or None, for the
devices. An installed package adds a workload to the command line by an entry point in its pyproject.toml; the first
line of the function's docstring describes it:

    [project.entry-points."partita.workloads"]
    recommender = "my_package:recommender"
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from inspect import Parameter, signature

from ... import entry_points
from ...devices.cluster import Cluster
from ...devices.given_cluster import as_cluster
from ...errors import AlreadyExistsError, InvalidArgumentError, NotFoundError
from ...graph.graphdef.sources import GraphSource
from ...graph.suggestions import suggestion
from ..models.description import ModelDescription
from ..models.sizes import read_model
from ..models.split import Split
from . import catalog
from .model_step import ModelStep
from .names import GROUP, SUMMARIES

_BOOLS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_TYPES: dict[object, Callable[[str], object]] = {
    int: int,
    float: float,
    str: str,
    bool: lambda text: _BOOLS[text.lower()],
    Split: Split.parse,
    Cluster: as_cluster,
    Cluster | None: as_cluster,
}


def _reader(annotation: object) -> Callable[[str], object] | None:
    """What turns a text into a value of the type of a setting; None for a type that no text can be turned into."""
    if isinstance(annotation, type) and issubclass(annotation, ModelDescription):
        return partial(read_model, annotation)
    return _TYPES.get(annotation)


@dataclass(frozen=True, slots=True)
class Workload:
    """A graph that `build` makes of settings; `summary` describes it in a few words."""

    name: str
    summary: str
    build: Callable[..., GraphSource | ModelStep]

    def settings(self) -> dict[str, Parameter]:
        """The settings by name; InvalidArgumentError for one that no text can be turned into."""
        found = dict(signature(self.build, eval_str=True).parameters)
        for setting in found.values():
            by_name = setting.kind in (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
            if not by_name or _reader(setting.annotation) is None:
                raise InvalidArgumentError(
                    f"workload {self.name!r}: its setting {setting} is no keyword of type int, float, str, bool, "
                    "Split, Cluster or a class of models; mend its function"
                )
        return found

    def graph(self, texts: Mapping[str, str]) -> GraphSource:
        """The graph of settings that are given as texts; raises as `made`."""
        made = self.made(texts)
        return made.graph if isinstance(made, ModelStep) else made

    def made(self, texts: Mapping[str, str | Cluster]) -> GraphSource | ModelStep:
        """What the function makes of settings that are given as texts; the devices may be given as a cluster too.

        Raises InvalidArgumentError for an unknown setting, a text that does not fit the type and a setting without
        default that is missing, and what the function raises.
        """
        settings = self.settings()
        values = {name: self._value(name, text, settings) for name, text in texts.items()}
        missing = [name for name, it in settings.items() if it.default is Parameter.empty and name not in values]
        if missing:
            raise InvalidArgumentError(f"workload {self.name!r}: setting {missing[0]!r} has no default; give a value")
        return self.build(**values)

    def _value(self, name: str, text: str | Cluster, settings: Mapping[str, Parameter]) -> object:
        if name not in settings:
            raise InvalidArgumentError(f"workload {self.name!r} has no setting {name!r}{suggestion(name, settings)}")
        if isinstance(text, Cluster):
            return text
        wanted = settings[name].annotation
        try:
            return (_reader(wanted) or str)(text)
        except (ValueError, KeyError):
            raise InvalidArgumentError(
                f"workload {self.name!r}: {name}={text!r} is no {wanted.__name__}; give one"
            ) from None


_WORKLOADS = {name: Workload(name, summary, getattr(catalog, name)) for name, summary in SUMMARIES.items()}


def register_workload(workload: Workload) -> None:
    """Adds a workload; AlreadyExistsError when there is one of that name."""
    if workload.name in _WORKLOADS:
        summary = _WORKLOADS[workload.name].summary
        raise AlreadyExistsError(f"there is a workload {workload.name!r} ({summary}); choose another name")
    _WORKLOADS[workload.name] = workload


def find_workload(name: str) -> Workload:
    """The workload of a name; NotFoundError, with the nearest name, when there is none."""
    if name not in _WORKLOADS:
        _load_installed(name)
    if name not in _WORKLOADS:
        raise NotFoundError(f"there is no workload {name!r}{suggestion(name, workload_names())}")
    return _WORKLOADS[name]


def workload_names() -> list[str]:
    """The names of all workloads, those of installed packages last."""
    return list(dict.fromkeys([*_WORKLOADS, *entry_points.names_of(GROUP)]))


def _load_installed(name: str) -> None:
    found = entry_points.loaded(GROUP, name, "workload")
    if found is None:
        return
    if not callable(found.value):
        raise InvalidArgumentError(f"workload {name!r}, {found.place!r}, is {found.value!r}; make it a function")
    _WORKLOADS[name] = Workload(name, (found.value.__doc__ or found.place).partition("\n")[0], found.value)
