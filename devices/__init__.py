"""Models of hardware, kernels, placement, the pipeline from a GraphDef to partitions, and timing.

cluster = local_cluster("cpu:1,gpu:2")
partitions = cut(graph_def, cluster, feeds=["x"], fetches=["y"])
simulate(partitions, cluster, feeds={"x": (32, 784)}).makespan_ns
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import load_lazily

if TYPE_CHECKING:
    from ..graph.ops.device_kinds import DeviceKind as DeviceKind
    from .calibration.calibrate import CalibrationReport as CalibrationReport, calibrate as calibrate
    from .catalog import (
        add_models as add_models,
        device_spec as device_spec,
        link_spec as link_spec,
        remove_models as remove_models,
    )
    from .cluster import Cluster as Cluster, local_cluster as local_cluster
    from .cluster_file import load_cluster as load_cluster, parse_cluster as parse_cluster
    from .device import Device as Device
    from .given_cluster import as_cluster as as_cluster
    from .kernels.op_cost import (
        CostContext as CostContext,
        bytes_moved as bytes_moved,
        elementwise as elementwise,
        flops as flops,
        free as free,
        takes_host_time as takes_host_time,
    )
    from .kernels.registry import Construction as Construction, deferred_kernel as deferred_kernel, kernel as kernel
    from .kinds import (
        KindDefaults as KindDefaults,
        register_device_kind as register_device_kind,
        unregister_device_kind as unregister_device_kind,
    )
    from .link import LinkSpec as LinkSpec
    from .machines import machines_of as machines_of
    from .operating_costs import OperatingCosts as OperatingCosts
    from .pipeline.cutting import cut as cut
    from .spec import DeviceSpec as DeviceSpec
    from .timing.collectives.collective_time import collective_time as collective_time
    from .timing.collectives.cost import CollectiveCost as CollectiveCost
    from .timing.costs.attention_costs import (
        decode_attention_cost as decode_attention_cost,
        latent_attention_cost as latent_attention_cost,
        prefill_attention_cost as prefill_attention_cost,
    )
    from .timing.costs.convolution_costs import (
        convolution_algorithm as convolution_algorithm,
        convolution_cost as convolution_cost,
    )
    from .timing.costs.expert_costs import expert_layer_cost as expert_layer_cost
    from .timing.costs.explanation import Explanation as Explanation
    from .timing.costs.fitted import FittedSource as FittedSource
    from .timing.costs.grappler import GrapplerSource as GrapplerSource
    from .timing.costs.grappler_device import GrapplerDevice as GrapplerDevice
    from .timing.costs.layer_costs import attention_cost as attention_cost, grouped_product_cost as grouped_product_cost
    from .timing.costs.product_costs import product_cost as product_cost
    from .timing.costs.roofline import RooflineSource as RooflineSource
    from .timing.costs.source import CostSource as CostSource, OpCost as OpCost
    from .timing.events import TimelineEvent as TimelineEvent
    from .timing.explaining import explain as explain
    from .timing.export.registry import (
        Exporter as Exporter,
        exporter_for as exporter_for,
        register_exporter as register_exporter,
    )
    from .timing.export.tensorboard import write_tensorboard as write_tensorboard
    from .timing.fits.calibration import Calibration as Calibration, load_calibration as load_calibration
    from .timing.hardware.flows import Flow as Flow, finish_times as finish_times
    from .timing.memory.use import MemoryPeak as MemoryPeak
    from .timing.session_timeline import SessionTimeline as SessionTimeline, StepSpan as StepSpan
    from .timing.simulate import simulate as simulate
    from .timing.timeline import Timeline as Timeline, start_times as start_times
    from .timing.tracing.recorded_timeline import recorded_timeline as recorded_timeline
    from .topology import Link as Link

load_lazily(__name__)
