"""The top floor: workloads to simulate, reports, stories (example scripts), and the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import load_lazily

if TYPE_CHECKING:
    from .report.limits import limits
    from .report.step import step_report
    from .report.text import columns, value_line
    from .stories.catalog import STORIES, tell
    from .workloads.cnn import cnn
    from .workloads.mlp import mlp
    from .workloads.reduction import all_to_one, all_to_one_tree
    from .workloads.registry import Workload, find_workload, register_workload, workload_names
    from .workloads.resnet50 import resnet50
    from .workloads.training import training_step
    from .workloads.transformer import TransformerSizes, transformer_encoder

__all__ = [
    "STORIES",
    "TransformerSizes",
    "Workload",
    "all_to_one",
    "all_to_one_tree",
    "cnn",
    "columns",
    "find_workload",
    "limits",
    "mlp",
    "register_workload",
    "resnet50",
    "step_report",
    "tell",
    "training_step",
    "transformer_encoder",
    "value_line",
    "workload_names",
]

load_lazily(
    __name__,
    {
        "report.limits": ["limits"],
        "report.step": ["step_report"],
        "report.text": ["columns", "value_line"],
        "stories.catalog": ["STORIES", "tell"],
        "workloads.cnn": ["cnn"],
        "workloads.mlp": ["mlp"],
        "workloads.reduction": ["all_to_one", "all_to_one_tree"],
        "workloads.registry": ["Workload", "find_workload", "register_workload", "workload_names"],
        "workloads.resnet50": ["resnet50"],
        "workloads.training": ["training_step"],
        "workloads.transformer": ["TransformerSizes", "transformer_encoder"],
    },
)
