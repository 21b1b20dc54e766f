"""A step of a workload as a loaded request, so that it is timed as `partita simulate` times a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...devices import Cluster, load_cluster, local_cluster
from ...graph import Graph
from ..report.memory_advice import advice_of
from ..workloads.model_step import ModelStep
from .choices import ChoiceOptions
from .failure import ConfigurationError, configuring
from .feeds import checked_feeds
from .planning.machines import machines_with_gpus
from .reporting.step_outputs import StepOutputs
from .request import Loaded, Request, describe, ends, live_nodes, wanted_devices
from .screen import Screen
from .simulate import StepNotes, timed


@dataclass(frozen=True, slots=True)
class LoadedStep:
    """A step that can be timed, and what is known about it."""

    loaded: Loaded
    about: StepNotes

    def timed(self, screen: Screen, as_json: bool, outputs: StepOutputs) -> int:
        """Prints the simulated time; returns the exit code. Raises as `simulate`."""
        return timed(self.loaded, screen, as_json, outputs, about=self.about)


def given_cluster(devices: str | None, file: Path | None, gpus: str | None = None) -> Cluster | None:
    """The cluster of the flags, None without one; ConfigurationError for a wrong one."""
    if gpus is not None:
        return machines_with_gpus(gpus)
    if file is None and devices is None:
        return None
    with configuring("--cluster" if devices is None else "--devices"):
        return local_cluster(devices or "") if file is None else load_cluster(file)


def loaded_step(name: str, made: object, graph: Graph, cluster: Cluster | None) -> LoadedStep:
    """A step of what the workload `name` made, on a cluster; without one on GPUs of one machine, as many as needed.

    Calls of functions stay: the clock plays one for each micro-batch. Raises ConfigurationError for a placeholder whose
    size the workload leaves open.
    """
    if isinstance(made, ModelStep):
        feeds, fetches, targets = dict(made.feeds), made.fetches, made.targets
        about = StepNotes((*made.warnings, *made.assumptions), made.tokens, advice_of(made))
        used = cluster or local_cluster(f"cpu:1,gpu:{made.mesh.devices}")
    else:
        feeds, (fetches, targets), about = _sizes(graph), ends(graph), StepNotes()
        used = cluster or local_cluster(wanted_devices(graph.device_names()))
    request = Request(Path(name), inline=not isinstance(made, ModelStep))
    checked = checked_feeds(feeds, graph)
    fetched = tuple(fetch for fetch in fetches if fetch not in feeds)
    loaded = Loaded(request, used, graph, checked, fetched, targets, fetched, {}, ChoiceOptions({}, {}))
    return LoadedStep(loaded, about)


def _sizes(graph: Graph) -> dict[str, tuple[int, ...]]:
    """The shapes of the placeholders that must be fed."""
    sizes = {}
    for number, properties in live_nodes(graph):
        if properties.op_def.record.must_be_fed:
            node = graph.node(number)
            shape = node.attrs.get("shape")
            if shape is None or None in shape:
                raise ConfigurationError(
                    f"--simulate: placeholder {describe(node)} has no size of its own; write the graph with --out, and "
                    f"give --shape {node.name}=... to partita simulate"
                )
            sizes[node.name] = tuple(shape)
    return sizes
