"""Models of hardware, kernels, placement, the pipeline from a GraphDef to partitions, and timing.

cluster = local_cluster("cpu:1,gpu:2")
partitions = cut(graph_def, cluster, feeds=["x"], fetches=["y"])
simulate(partitions, cluster, feeds={"x": (32, 784)}).makespan_ns
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import load_lazily

if TYPE_CHECKING:
    from ..graph.ops.device_kinds import DeviceKind
    from .calibration.calibrate import CalibrationReport, calibrate
    from .catalog import add_models, device_spec, link_spec, remove_models
    from .cluster import Cluster, local_cluster
    from .cluster_file import load_cluster, parse_cluster
    from .device import Device
    from .given_cluster import as_cluster
    from .kernels.op_cost import CostContext, bytes_moved, elementwise, flops, free, takes_host_time
    from .kernels.registry import Construction, deferred_kernel, kernel
    from .kinds import KindDefaults, register_device_kind, unregister_device_kind
    from .link import LinkSpec
    from .pipeline.cutting import cut
    from .spec import DeviceSpec
    from .timing.collectives.collective_time import collective_time
    from .timing.collectives.cost import CollectiveCost
    from .timing.costs.explanation import Explanation
    from .timing.costs.fitted import FittedSource
    from .timing.costs.grappler import GrapplerSource
    from .timing.costs.grappler_device import GrapplerDevice
    from .timing.costs.layer_costs import attention_cost, grouped_product_cost
    from .timing.costs.roofline import RooflineSource
    from .timing.costs.source import CostSource, OpCost
    from .timing.events import TimelineEvent
    from .timing.explaining import explain
    from .timing.export.registry import Exporter, exporter_for, register_exporter
    from .timing.fits.calibration import Calibration, load_calibration
    from .timing.hardware.flows import Flow, finish_times
    from .timing.memory.use import MemoryPeak
    from .timing.session_timeline import SessionTimeline, StepSpan
    from .timing.simulate import simulate
    from .timing.timeline import Timeline, start_times
    from .topology import Link

__all__ = [
    "Calibration",
    "CalibrationReport",
    "Cluster",
    "CollectiveCost",
    "Construction",
    "CostContext",
    "CostSource",
    "Device",
    "DeviceKind",
    "DeviceSpec",
    "Explanation",
    "Exporter",
    "FittedSource",
    "Flow",
    "GrapplerDevice",
    "GrapplerSource",
    "KindDefaults",
    "Link",
    "LinkSpec",
    "MemoryPeak",
    "OpCost",
    "RooflineSource",
    "SessionTimeline",
    "StepSpan",
    "Timeline",
    "TimelineEvent",
    "add_models",
    "as_cluster",
    "attention_cost",
    "bytes_moved",
    "calibrate",
    "collective_time",
    "cut",
    "deferred_kernel",
    "device_spec",
    "elementwise",
    "explain",
    "exporter_for",
    "finish_times",
    "flops",
    "free",
    "grouped_product_cost",
    "kernel",
    "link_spec",
    "load_calibration",
    "load_cluster",
    "local_cluster",
    "parse_cluster",
    "register_device_kind",
    "register_exporter",
    "remove_models",
    "simulate",
    "start_times",
    "takes_host_time",
    "unregister_device_kind",
]

load_lazily(
    __name__,
    {
        ".graph.ops.device_kinds": ["DeviceKind"],
        "calibration.calibrate": ["CalibrationReport", "calibrate"],
        "catalog": ["add_models", "device_spec", "link_spec", "remove_models"],
        "cluster": ["Cluster", "local_cluster"],
        "cluster_file": ["load_cluster", "parse_cluster"],
        "given_cluster": ["as_cluster"],
        "device": ["Device"],
        "kernels.op_cost": ["CostContext", "bytes_moved", "elementwise", "flops", "free", "takes_host_time"],
        "kernels.registry": ["Construction", "deferred_kernel", "kernel"],
        "kinds": ["KindDefaults", "register_device_kind", "unregister_device_kind"],
        "link": ["LinkSpec"],
        "pipeline.cutting": ["cut"],
        "spec": ["DeviceSpec"],
        "timing.collectives.collective_time": ["collective_time"],
        "timing.collectives.cost": ["CollectiveCost"],
        "timing.costs.explanation": ["Explanation"],
        "timing.costs.fitted": ["FittedSource"],
        "timing.costs.grappler": ["GrapplerSource"],
        "timing.costs.grappler_device": ["GrapplerDevice"],
        "timing.costs.layer_costs": ["attention_cost", "grouped_product_cost"],
        "timing.costs.roofline": ["RooflineSource"],
        "timing.costs.source": ["CostSource", "OpCost"],
        "timing.events": ["TimelineEvent"],
        "timing.explaining": ["explain"],
        "timing.export.registry": ["Exporter", "exporter_for", "register_exporter"],
        "timing.fits.calibration": ["Calibration", "load_calibration"],
        "timing.hardware.flows": ["Flow", "finish_times"],
        "timing.memory.use": ["MemoryPeak"],
        "timing.session_timeline": ["SessionTimeline", "StepSpan"],
        "timing.simulate": ["simulate"],
        "timing.timeline": ["Timeline", "start_times"],
        "topology": ["Link"],
    },
)
