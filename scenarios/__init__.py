"""The top floor: workloads to simulate, reports, stories (example scripts), and the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import load_lazily

if TYPE_CHECKING:
    from .executors.processes import WorkerProcesses as WorkerProcesses
    from .executors.serial import SerialExecutor as SerialExecutor
    from .models.bert import BertModel as BertModel
    from .models.description import ModelDescription as ModelDescription
    from .models.dlrm import DlrmModel as DlrmModel
    from .models.families import model_from_config as model_from_config
    from .models.gpt import GptModel as GptModel
    from .models.llama import LlamaModel as LlamaModel
    from .models.moe import LatentAttention as LatentAttention, MoeModel as MoeModel
    from .models.rope import Rope as Rope
    from .models.split import Split as Split
    from .models.vit import VitModel as VitModel
    from .planners.money.goodput import (
        Checkpointing as Checkpointing,
        best_checkpointing as best_checkpointing,
        goodput_of_interval as goodput_of_interval,
    )
    from .planners.money.pareto import pareto_front as pareto_front, pareto_plans as pareto_plans
    from .planners.money.run_costs import RunCosts as RunCosts, checkpoint_bytes as checkpoint_bytes
    from .progress import shown_progress as shown_progress
    from .report.limits import limits as limits
    from .report.page.report import write_report as write_report, write_table_report as write_table_report
    from .report.page.table_page import TableColumn as TableColumn
    from .report.step import step_report as step_report
    from .report.text import columns as columns, value_line as value_line
    from .serving.deployment import Deployment as Deployment
    from .serving.frameworks import framework_names as framework_names
    from .serving.rates import (
        ServingLoad as ServingLoad,
        ServingRates as ServingRates,
        serving_rates as serving_rates,
    )
    from .stories.catalog import STORIES as STORIES, step_of as step_of, tell as tell
    from .sweeps.axes import SweepAxes as SweepAxes
    from .sweeps.ranges import geometric_values as geometric_values, linear_values as linear_values
    from .sweeps.sweep import sweep as sweep
    from .sweeps.table import SweepRow as SweepRow, SweepTable as SweepTable
    from .workloads.cnn import cnn as cnn
    from .workloads.mlp import mlp as mlp
    from .workloads.model_building import build_model as build_model
    from .workloads.model_step import ModelStep as ModelStep
    from .workloads.reduction import all_to_one as all_to_one, all_to_one_tree as all_to_one_tree
    from .workloads.registry import (
        Workload as Workload,
        find_workload as find_workload,
        register_workload as register_workload,
        workload_names as workload_names,
    )
    from .workloads.resnet50 import resnet50 as resnet50
    from .workloads.training import training_step as training_step
    from .workloads.transformer import TransformerSizes as TransformerSizes, transformer_encoder as transformer_encoder
    from .workloads.transformers.optimizers import OptimizerSettings as OptimizerSettings

load_lazily(__name__)
