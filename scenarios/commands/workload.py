"""`partita workload`: builds the graph of a workload and writes or times it, or lists all workloads.

Settings are texts. Five that models have in common are flags of their own; the others are given by `--set`:

    partita workload llama --config config.json --split tp=8,dp=2 --set sequence_length=8192 --out step.pb
    {"config": "config.json", "split": "tp=8,dp=2", "sequence_length": "8192"}        what the workload is given
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from inspect import Parameter
from pathlib import Path

from ...devices import Cluster
from ...errors import PartitaError
from ...graph import Graph, graph_def_to_graph, save_graph_def
from ...graph.graphdef.sources import parse_graph_def
from ..workloads.model_step import ModelStep
from ..workloads.registry import Workload, find_workload, workload_names
from .failure import ConfigurationError, configuring
from .planning.machines import machines_with_gpus
from .reporting.step_outputs import StepOutputs
from .request import live_nodes
from .screen import Screen
from .workload_step import given_cluster, loaded_step

FLAGS = {
    "config": "--config FILE",
    "split": "--split tp=2,dp=4",
    "inference": "--inference prefill|decode",
    "context": "--context N",
    "cluster": "--cluster FILE.toml",
}
"""the settings that have a flag of their own, and how help shows it"""
_ONCE = "representatives"  # the setting by which ranks that do the same are played once


@dataclass(frozen=True, slots=True)
class WorkloadFlags:
    """The flags of the command, as texts and paths."""

    name: str | None = None
    is_list: bool = False
    config: Path | None = None
    split: str | None = None
    inference: str | None = None
    context: int | None = None
    settings: Sequence[str] = ()
    devices: str | None = None
    cluster: Path | None = None
    gpus: str | None = None
    out: Path | None = None
    is_simulated: bool = False
    outputs: StepOutputs = field(default_factory=StepOutputs)

    def beside_name(self) -> list[str]:
        """The flags that are given and mean nothing without a workload."""
        given = {
            "--set": self.settings,
            "--config": self.config,
            "--split": self.split,
            "--inference": self.inference,
            "--context": self.context,
            "--devices": self.devices,
            "--cluster": self.cluster,
            "--gpus": self.gpus,
            "--out": self.out,
            "--simulate": self.is_simulated,
            **self.outputs.paths,
        }
        return [flag for flag, value in given.items() if value not in (None, (), False)]

    def texts(self, known: Mapping[str, Parameter]) -> dict[str, str | Cluster]:
        """The settings of a workload that has the `known` ones; ConfigurationError for a wrong --gpus."""
        devices = None if "cluster" not in known else self.devices or self.cluster
        own = {"config": self.config, "split": self.split, "inference": self.inference}
        flags = {**own, "context": self.context, "cluster": devices}
        given = {name: str(it) for name, it in flags.items() if it is not None}
        texts: dict[str, str | Cluster] = {**_pairs(self.settings), **given}
        if self.is_simulated and _ONCE in known:
            texts.setdefault(_ONCE, "yes")
        if self.gpus is not None and "cluster" in known:
            texts["cluster"] = machines_with_gpus(self.gpus)
        return texts


def workload(flags: WorkloadFlags, as_json: bool) -> int:
    """Writes the graph of a workload, or times a step of it, or without a name lists all; returns the exit code.

    Raises ConfigurationError for an unknown name or setting, a value that does not fit, and a file that cannot be
    written; when it times, as `simulate` too.
    """
    screen = Screen()
    if flags.name is None or flags.is_list:
        if flags.name is not None:
            raise ConfigurationError(f"--list lists all workloads; leave {flags.name!r} or --list out")
        if beside := flags.beside_name():
            raise ConfigurationError(f"{beside[0]} belongs to a workload; name it: partita workload NAME --out FILE")
        _list(screen, as_json)
        return 0
    with configuring():
        chosen = find_workload(flags.name)
        known = chosen.settings()
    _check_flags(flags, known)
    flags.outputs.check({"--config": flags.config, "--cluster": flags.cluster}, {"--out": flags.out})
    texts = flags.texts(known)
    missing = [it for it in known.values() if it.default is Parameter.empty and it.name not in texts]
    if missing:
        raise ConfigurationError(f"workload {flags.name!r} needs {_flag(missing[0])}")
    made, graph = _made(chosen, texts, screen)
    if flags.out is None:
        step = loaded_step(chosen.name, made, graph, given_cluster(flags.devices, flags.cluster, flags.gpus))
        return step.timed(screen, as_json, flags.outputs)
    with configuring("--out"):
        save_graph_def(graph.to_graph_def(), flags.out)
    _print(chosen, made, graph, flags.out, screen, as_json)
    return 0


def _check_flags(flags: WorkloadFlags, known: Mapping[str, Parameter]) -> None:
    """ConfigurationError for flags that exclude each other, and for none that says what to do."""
    if flags.out is None and not flags.is_simulated:
        shown = " ".join(_flag(it) for it in known.values())
        raise ConfigurationError(
            f"workload {flags.name!r} needs --out FILE, or --simulate; its settings: {shown or 'none'}"
        )
    if flags.out is not None and flags.is_simulated:
        raise ConfigurationError("--out and --simulate exclude each other; give one of them")
    if flags.out is not None and flags.outputs.given:
        raise ConfigurationError(f"{flags.outputs.given[0]} shows a simulated step; give --simulate in place of --out")
    named = {"--devices": flags.devices, "--cluster": flags.cluster, "--gpus": flags.gpus}
    given = [flag for flag, value in named.items() if value is not None]
    if len(given) > 1:
        raise ConfigurationError(f"{given[0]} and {given[1]} exclude each other; give one of them")
    if flags.out is not None and "cluster" not in known and given:
        raise ConfigurationError(f"--cluster: workload {flags.name!r} is for no cluster; leave it out, or --simulate")


def _made(chosen: Workload, settings: Mapping[str, str | Cluster], screen: Screen) -> tuple[object, Graph]:
    """What a workload makes, and its graph, imported where the workload gives no graph of ours."""
    with screen.working(f"building {chosen.name}"), configuring():
        try:
            made = chosen.made(settings)
            if isinstance(made, ModelStep):
                return made, made.graph
            return made, graph_def_to_graph(parse_graph_def(made))
        except PartitaError:
            raise
        except Exception as error:  # the function of another package may raise anything
            raise ConfigurationError(
                f"workload {chosen.name!r} cannot be built: {type(error).__name__}: {error}; change a setting"
            ) from error


def _pairs(settings: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in settings:
        name, found, value = text.partition("=")
        if not found:
            raise ConfigurationError(f"--set {text!r} is no NAME=VALUE")
        if name in pairs:
            raise ConfigurationError(f"--set {name}: it is set twice")
        if name in FLAGS:
            raise ConfigurationError(f"--set {name}: it has a flag of its own; write {FLAGS[name]}")
        pairs[name] = value
    return pairs


def _print(chosen: Workload, made: object, graph: Graph, out: Path, screen: Screen, as_json: bool) -> None:
    devices = sorted(name for name in graph.device_names() if name)
    nodes = dict(live_nodes(graph))
    placeholders = [graph.node_name(n) for n, properties in nodes.items() if properties.op_def.record.must_be_fed]
    if as_json:
        document = {"name": chosen.name, "file": str(out), "nodes": len(nodes)}
        screen.json({**document, "devices": devices, "placeholders": placeholders, **_ends(made)})
        return
    fed = f"; feed {', '.join(placeholders)}" if placeholders else ""
    screen.line(f"{out}: {len(nodes):,} nodes on {', '.join(devices) or 'no device in particular'}{fed}")
    ends = _ends(made)
    warnings = ends.pop("warnings", [])
    for what, names in ends.items():
        screen.line(f"{what}: {', '.join(names)}")
    for warning in warnings:
        screen.text(f"note: {warning}")


def _ends(made: object) -> dict[str, list[str]]:
    """What to fetch and run of the step of a model, and what it does without; nothing for another graph."""
    if not isinstance(made, ModelStep):
        return {}
    ends = {"fetches": made.fetches, "targets": made.targets, "initialise": made.initialise}
    ends["warnings"] = (*made.warnings, *made.assumptions)
    return {what: list(names) for what, names in ends.items() if names}


def _list(screen: Screen, as_json: bool) -> None:
    with configuring():
        found = [find_workload(name) for name in workload_names()]
        rows = [(one, [_setting(it) for it in one.settings().values()]) for one in found]
    if as_json:
        documents = [{"name": one.name, "description": one.summary, "settings": settings} for one, settings in rows]
        screen.json({"workloads": documents})
        return
    for one, settings in rows:
        screen.line(f"{one.name}: {one.summary}")
        screen.line(f"    {', '.join(settings) or 'no settings'}")


def _flag(setting: Parameter) -> str:
    return _setting(setting) if setting.name in FLAGS else f"--set {_setting(setting)}"


def _setting(setting: Parameter) -> str:
    """A setting with its default: "layers=4"; "layers=INT" without one; or its flag."""
    if setting.name in FLAGS:
        return FLAGS[setting.name]
    value = setting.annotation.__name__.upper() if setting.default is Parameter.empty else setting.default
    return f"{setting.name}={value}"
