"""What sessions do with each field of ConfigProto and RunOptions. Checks, docs/config.md and tests use this table.

The keys are paths such as "gpu_options.allow_growth". Each field that the messages declare is in the table, or its own
fields are (`EXPANDED`). A field is honoured, or ignored because it changes neither values nor placement, or refused.

Sessions over several tasks (`open_cluster_session`) treat some fields differently, like those of TensorFlow; the source
is what version 2.21 does when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ....graph import RewriterConfig
from ....graph.ops.device_kinds import GPU


class Treatment(Enum):
    """What a session does with a field that is set."""

    HONOURED = "honoured"
    IGNORED = "ignored"
    """because it changes neither values nor placement"""
    REFUSED = "refused"


def _always(_value: object) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class ConfigField:
    """What sessions do with one field, and why (`note`, which docs/config.md prints).

    A refused field is refused only for values for which `refuses` is true and, if `kind` is set, only where there are
    devices of that kind. `tasks` is the treatment by sessions over several tasks, None if it is the same, and
    `tasks_note` its reason.
    """

    treatment: Treatment
    note: str
    tasks: Treatment | None = None
    tasks_note: str = ""
    refuses: Callable[[Any], bool] = _always  # Any: whatever type the field has
    kind: str = ""

    def treatment_by(self, *, distributed: bool) -> tuple[Treatment, str]:
        """The treatment and its reason, in a session over several tasks (`distributed`) or a local one."""
        return (self.tasks, self.tasks_note) if distributed and self.tasks is not None else (self.treatment, self.note)


def _honoured(note: str, **tasks: Any) -> ConfigField:
    return ConfigField(Treatment.HONOURED, note, **tasks)


def _ignored(note: str, **tasks: Any) -> ConfigField:
    return ConfigField(Treatment.IGNORED, note, **tasks)


def _all_ignored(note: str, prefix: str, names: str) -> dict[str, ConfigField]:
    return {prefix + name: _ignored(note) for name in names.split()}


def _refused(note: str, refuses: Callable[[Any], bool] = _always, kind: str = "") -> ConfigField:
    return ConfigField(Treatment.REFUSED, note, refuses=refuses, kind=kind)


def _is_on(toggle: int) -> bool:
    return toggle not in (RewriterConfig.DEFAULT, RewriterConfig.OFF)


_VALUE_PRESERVING = (
    *("arithmetic", "common_subgraph_elimination", "constfold", "dependency", "function", "implementation_selector"),
    *("layout", "loop", "memory", "pruning", "remap", "scoped_allocator", "shape"),
)


def _has_other_optimizers(names: Collection[str]) -> bool:
    return not set(names).issubset(_VALUE_PRESERVING)


_THREADS = "threads change no value"
_GRAPPLER = "a pass of Grappler that changes no value; Partita's own are `optimizer_options`"
_COMPILER = "another compiler or runtime changes at most the last bits of values"
_CLUSTER = "it is about how the tasks of a real cluster find each other"
_SHARED = "every session has tasks and state of its own"
_RPC = "all tasks are in one process"
_GPU_MEMORY = "the memory of a simulated GPU is that of its spec"
_PRECISION = "computes in half precision, which changes values; cast in the graph instead"
_GPU_COUNT = "other GPUs than those of the session; say so in `devices`, or hide them with `device_count`"

EXPANDED = frozenset(
    {
        "experimental",
        "gpu_options",
        "gpu_options.experimental",
        "graph_options",
        "graph_options.optimizer_options",
        "graph_options.rewrite_options",
        "graph_options.rewrite_options.auto_parallel",
    }
)
"""messages that are in the table by their own fields"""

CONFIG_FIELDS = {
    "device_count": _honoured(
        'caps the devices of a kind, in every task: {"GPU": 0} hides all GPUs; it makes none. A count below 0 caps '
        "none, but without a CPU there is no session (NOT_FOUND); kinds that do not exist are ignored",
        tasks=Treatment.IGNORED,
        tasks_note="devices are those of the workers, whatever a client's config says",
    ),
    **_all_ignored(_THREADS, "", "intra_op_parallelism_threads inter_op_parallelism_threads use_per_session_threads"),
    "session_inter_op_thread_pool": _honoured(
        "`RunOptions.inter_op_thread_pool` must be below the number of pools; sessions of a process share one with a "
        "`global_name` and must give it the same count of threads; " + _THREADS,
        tasks=Treatment.REFUSED,
        tasks_note="Distributed session does not support session thread pool options.",
    ),
    "placement_period": _ignored("nodes are placed once"),
    "device_filters": _honoured(
        "devices of other tasks than the client's are invisible unless a filter fits them; one that is no device name "
        "is an error, one that fits nothing is not"
    ),
    **_all_ignored(
        _GPU_MEMORY,
        "gpu_options.",
        "per_process_gpu_memory_fraction allow_growth allocator_type deferred_deletion_bytes force_gpu_compatible",
    ),
    "gpu_options.visible_device_list": _refused(_GPU_COUNT, kind=GPU.name),
    "gpu_options.polling_active_delay_usecs": _ignored("nothing is polled"),
    "gpu_options.polling_inactive_delay_msecs": _ignored("nothing is polled"),
    "gpu_options.experimental.virtual_devices": _refused(_GPU_COUNT, kind=GPU.name),
    "gpu_options.experimental.num_virtual_devices_per_gpu": _refused(_GPU_COUNT, kind=GPU.name),
    **_all_ignored(
        _GPU_MEMORY,
        "gpu_options.experimental.",
        "use_unified_memory timestamped_allocator kernel_tracker_max_interval kernel_tracker_max_bytes "
        "kernel_tracker_max_pending internal_fragmentation_fraction use_cuda_malloc_async "
        "disallow_retry_on_allocation_failure gpu_host_mem_limit_in_mb gpu_host_mem_disallow_growth "
        "gpu_system_memory_size_in_mb",
    ),
    "gpu_options.experimental.num_dev_to_dev_copy_streams": _ignored("streams matter only in simulations"),
    "gpu_options.experimental.collective_ring_order": _ignored("the order in a ring changes no value"),
    "gpu_options.experimental.populate_pjrt_gpu_client_creation_info": _ignored(_COMPILER),
    "gpu_options.experimental.node_id": _ignored(_CLUSTER),
    "gpu_options.experimental.stream_merge_options": _ignored("streams matter only in simulations"),
    "pluggable_device_options": _ignored("there are no pluggable devices"),
    "allow_soft_placement": _honoured(
        "a node whose requested device does not exist or cannot run it goes to another device of that task"
    ),
    "log_device_placement": _ignored("nothing is logged; `RunOptions.output_partition_graphs` shows placements"),
    "graph_options.enable_recv_scheduling": _ignored(
        "local sessions schedule no receives",
        tasks=Treatment.HONOURED,
        tasks_note="receives wait until they are needed soon",
    ),
    "graph_options.optimizer_options.do_common_subexpression_elimination": _honoured("equal nodes are merged"),
    "graph_options.optimizer_options.do_constant_folding": _honoured(
        "nodes that depend on constants alone are computed once"
    ),
    "graph_options.optimizer_options.max_folded_constant_in_bytes": _honoured(
        "the largest constant that folding makes"
    ),
    "graph_options.optimizer_options.do_function_inlining": _honoured("calls of functions are inlined"),
    "graph_options.optimizer_options.opt_level": _honoured(
        "L1, the default once any of `optimizer_options` is set, merges equal nodes and folds constants"
    ),
    **_all_ignored(
        _COMPILER,
        "graph_options.optimizer_options.",
        "global_jit_level cpu_global_jit",
    ),
    "graph_options.build_cost_model": _honoured(
        "every so many steps of a request are traced, and `RunMetadata` gets `step_stats` and `cost_graph`; the first "
        "is step `build_cost_model + build_cost_model_after`; not where loops run in the interpreter",
        tasks=Treatment.HONOURED,
        tasks_note="step k of a request, from 1, gets a `cost_graph` if `k - build_cost_model_after` is a multiple",
    ),
    "graph_options.build_cost_model_after": _honoured("see `build_cost_model`"),
    "graph_options.infer_shapes": _honoured("`graph_def` of a session has `_output_shapes` on every node with outputs"),
    "graph_options.place_pruned_graph": _honoured(
        "only what a request needs is placed, when it is prepared; stateful nodes stay where they were first placed",
        tasks=Treatment.IGNORED,
        tasks_note="a session on several tasks places the whole graph",
    ),
    "graph_options.enable_bfloat16_sendrecv": _ignored(
        "local sessions send tensors as they are",
        tasks=Treatment.HONOURED,
        tasks_note="float tensors go from task to task as bfloat16",
    ),
    "graph_options.timeline_step": _ignored("TensorFlow does not use it either"),
    **_all_ignored(
        _GRAPPLER,
        "graph_options.rewrite_options.",
        "cpu_layout_conversion layout_optimizer constant_folding shape_optimization remapping "
        "common_subgraph_elimination arithmetic_optimization dependency_optimization loop_optimization "
        "function_optimization disable_model_pruning scoped_allocator_optimization "
        "implementation_selector disable_meta_optimizer disable_tfg_optimizer "
        "experimental_conditional_code_motion meta_optimizer_iterations min_graph_nodes "
        "experimental_disable_compressed_tensor_optimization "
        "experimental_disable_folding_quantization_emulation memory_optimization "
        "memory_optimizer_target_node_name_scope meta_optimizer_timeout_ms fail_on_optimizer_errors "
        "scoped_allocator_opts inter_optimizer_verifier_config post_optimization_verifier_config",
    ),
    "graph_options.rewrite_options.debug_stripper": _refused("removes assertions; leave them out of the graph", _is_on),
    "graph_options.rewrite_options.pin_to_host_optimization": _refused(
        "moves nodes from GPUs to CPUs; give them their devices in the graph", _is_on, kind=GPU.name
    ),
    "graph_options.rewrite_options.auto_mixed_precision": _refused(_PRECISION, _is_on, kind=GPU.name),
    "graph_options.rewrite_options.auto_mixed_precision_mkl": _refused(_PRECISION, _is_on),
    "graph_options.rewrite_options.auto_mixed_precision_onednn_bfloat16": _refused(_PRECISION, _is_on),
    "graph_options.rewrite_options.auto_mixed_precision_cpu": _refused(_PRECISION, _is_on),
    "graph_options.rewrite_options.use_plugin_optimizers": _ignored("there are no plugins"),
    "graph_options.rewrite_options.auto_parallel.enable": _refused("puts replicas of the graph on GPUs", kind=GPU.name),
    "graph_options.rewrite_options.auto_parallel.num_replicas": _ignored("see `auto_parallel.enable`"),
    "graph_options.rewrite_options.optimizers": _refused(
        "names passes that may change values or placement; name only " + ", ".join(_VALUE_PRESERVING),
        _has_other_optimizers,
    ),
    "graph_options.rewrite_options.custom_optimizers": _refused("names passes that Partita does not have"),
    "operation_timeout_in_ms": _honoured(
        "the time limit of every step, and of every call of a partial run, whose options give none; "
        "DEADLINE_EXCEEDED when it is over"
    ),
    "rpc_options": _ignored(_RPC),
    "cluster_def": _ignored(
        "a local session has no other tasks than those of `devices`",
        tasks=Treatment.REFUSED,
        tasks_note="other tasks than those of the session; say so in `cluster`",
    ),
    **_all_ignored(_SHARED, "", "isolate_session_state share_cluster_devices_in_session"),
    "experimental.collective_group_leader": _ignored(_CLUSTER),
    "experimental.executor_type": _honoured(
        '"", "DEFAULT" or "SINGLE_THREADED_EXECUTOR", all the same; no other exists'
    ),
    "experimental.recv_buf_max_chunk": _ignored(_RPC),
    **_all_ignored(
        _THREADS,
        "experimental.",
        "use_numa_affinity disable_thread_spinning",
    ),
    "experimental.collective_deterministic_sequential_execution": _ignored("every run of a graph is deterministic"),
    "experimental.collective_nccl": _ignored(
        "how collectives move their bytes changes at most the last bits of values"
    ),
    **_all_ignored(
        _SHARED,
        "experimental.",
        "share_session_state_in_clusterspec_propagation share_cluster_devices_in_session",
    ),
    "experimental.session_metadata": _honoured(
        "goes into `RunMetadata`; a version below 0 is an error",
        tasks=Treatment.IGNORED,
        tasks_note="is not passed on to the master",
    ),
    "experimental.optimize_for_static_graph": _ignored("the graph may still be extended"),
    **_all_ignored(
        _COMPILER,
        "experimental.",
        "enable_mlir_bridge mlir_bridge_rollout enable_mlir_graph_optimization "
        "xla_fusion_autotuner_thresh use_tfrt enable_multi_host tfrt_use_ifrt backend_server_port "
        "target_tpu target_gpu stream_merge_threshold xla_prefer_single_graph_cluster tf2xla_dump_dir "
        "online_cost_analysis",
    ),
    "experimental.disable_output_partition_graphs": _honoured(
        "a step that asks for its partition graphs is refused",
        tasks=Treatment.IGNORED,
        tasks_note="workers keep their partition graphs anyway",
    ),
    "experimental.disable_functional_ops_lowering": _honoured(
        "conditionals and loops of functions stay single nodes, on one device each"
    ),
    "experimental.coordination_config": _ignored(_CLUSTER),
    "experimental.disable_optimize_for_static_graph": _ignored("see `optimize_for_static_graph`"),
    "experimental.disable_eager_executor_streaming_enqueue": _ignored("there is no eager executor"),
    "experimental.finalize_function_library_runtime": _ignored("only saves memory"),
    "experimental.finalize_resource_manager": _ignored("only saves memory"),
}
RUN_FIELDS = {
    "trace_level": _honoured(
        "any but NO_TRACE fills `RunMetadata.step_stats`",
        tasks=Treatment.HONOURED,
        tasks_note="FULL_TRACE fills `RunMetadata.step_stats`",
    ),
    "timeout_in_ms": _honoured("the time limit of the step; `operation_timeout_in_ms` unless above 0"),
    "inter_op_thread_pool": _honoured(
        "a pool that does not exist is an error; " + _THREADS,
        tasks=Treatment.IGNORED,
        tasks_note=_THREADS,
    ),
    "output_partition_graphs": _honoured("fills `RunMetadata.partition_graphs`"),
    "debug_options": _ignored("watching a tensor changes no value; nothing is written"),
    "report_tensor_allocations_upon_oom": _ignored("there is no such report"),
    "experimental.collective_graph_key": _ignored("a step of one process is one"),
    **_all_ignored(_THREADS, "experimental.", "use_run_handler_pool run_handler_pool_options"),
}
