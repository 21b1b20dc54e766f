"""What is computed: graphs, how they are made, read and written, changed by passes, and cut over devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import load_lazily

if TYPE_CHECKING:
    from .analysis.gradient_rules import Forward, gradient
    from .analysis.shape_functions import ShapeContext, shape_fn, with_rank
    from .builder.builder import GraphBuilder
    from .builder.handles import Operation, Tensor
    from .checked_import import import_graph_def
    from .columns import EdgeArrays
    from .dtypes import DataType
    from .exporter import to_graph_def
    from .formats.bundle_reader import BundleReader
    from .formats.bundle_writer import BundleWriter
    from .formats.saved_model import SavedGraph, load_saved_model
    from .functions.call_frame import FunctionCallFrame
    from .gradients.backward import gradients
    from .graph import Graph
    from .graphdef.files import graph_def_from_text, graph_def_to_text, load_graph_def, save_graph_def
    from .graphdef.import_options import ImportOptions, ImportResults
    from .graphdef.importer import graph_def_to_graph
    from .node import Edge, Node
    from .ops.properties import NodeProperties
    from .ops.record import NodeClass
    from .ops.registration import register_op
    from .partition.options import PartitionOptions
    from .partition.recv_epochs import add_control_edges
    from .partition.split import partition, split_graph
    from .passes.client_graph import (
        RewriteMetadata,
        build_client_graph,
        client_graph,
        prune_for_reverse_reachability,
        rewrite_graph_for_execution,
    )
    from .passes.lower_functional import lower_functional
    from .passes.optimising.optimizer import optimize
    from .passes.registry import GraphContext, GraphPass, PartitionContext, PartitionPass, register_pass
    from .passes.selection import Passes
    from .protos import (
        AttrValue,
        CallableOptions,
        ConfigProto,
        CostGraphDef,
        DeviceAttributes,
        FunctionDefLibrary,
        GraphDef,
        GraphOptions,
        MetaGraphDef,
        NameAttrList,
        NodeDef,
        OpDef,
        OpList,
        RewriterConfig,
        RunMetadata,
        RunOptions,
        SavedModel,
        StepStats,
        TensorProto,
        TensorShapeProto,
        VersionDef,
    )
    from .shape_inference.infer import infer_shapes
    from .structured import cond, while_loop
    from .tensor import numpy_to_tensor, tensor_to_numpy
    from .tensor_id import TensorId, parse_tensor_name
    from .versions import Versions

__all__ = [
    "AttrValue",
    "BundleReader",
    "BundleWriter",
    "CallableOptions",
    "ConfigProto",
    "CostGraphDef",
    "DataType",
    "DeviceAttributes",
    "Edge",
    "EdgeArrays",
    "Forward",
    "FunctionCallFrame",
    "FunctionDefLibrary",
    "Graph",
    "GraphBuilder",
    "GraphContext",
    "GraphDef",
    "GraphOptions",
    "GraphPass",
    "ImportOptions",
    "ImportResults",
    "MetaGraphDef",
    "NameAttrList",
    "Node",
    "NodeClass",
    "NodeDef",
    "NodeProperties",
    "OpDef",
    "OpList",
    "Operation",
    "PartitionContext",
    "PartitionOptions",
    "PartitionPass",
    "Passes",
    "RewriteMetadata",
    "RewriterConfig",
    "RunMetadata",
    "RunOptions",
    "SavedGraph",
    "SavedModel",
    "ShapeContext",
    "StepStats",
    "Tensor",
    "TensorId",
    "TensorProto",
    "TensorShapeProto",
    "VersionDef",
    "Versions",
    "add_control_edges",
    "build_client_graph",
    "client_graph",
    "cond",
    "gradient",
    "gradients",
    "graph_def_from_text",
    "graph_def_to_graph",
    "graph_def_to_text",
    "import_graph_def",
    "infer_shapes",
    "load_graph_def",
    "load_saved_model",
    "lower_functional",
    "numpy_to_tensor",
    "optimize",
    "parse_tensor_name",
    "partition",
    "prune_for_reverse_reachability",
    "register_op",
    "register_pass",
    "rewrite_graph_for_execution",
    "save_graph_def",
    "shape_fn",
    "split_graph",
    "tensor_to_numpy",
    "to_graph_def",
    "while_loop",
    "with_rank",
]

load_lazily(
    __name__,
    {
        "builder.handles": ["Operation", "Tensor"],
        "analysis.gradient_rules": ["Forward", "gradient"],
        "analysis.shape_functions": ["ShapeContext", "shape_fn", "with_rank"],
        "formats.bundle_writer": ["BundleWriter"],
        "formats.bundle_reader": ["BundleReader"],
        "builder.builder": ["GraphBuilder"],
        "dtypes": ["DataType"],
        "formats.saved_model": ["SavedGraph", "load_saved_model"],
        "functions.call_frame": ["FunctionCallFrame"],
        "gradients.backward": ["gradients"],
        "columns": ["EdgeArrays"],
        "graph": ["Graph"],
        "versions": ["Versions"],
        "exporter": ["to_graph_def"],
        "graphdef.files": ["graph_def_from_text", "graph_def_to_text", "load_graph_def", "save_graph_def"],
        "checked_import": ["import_graph_def"],
        "graphdef.import_options": ["ImportOptions", "ImportResults"],
        "graphdef.importer": ["graph_def_to_graph"],
        "node": ["Edge", "Node"],
        "ops.properties": ["NodeProperties"],
        "ops.record": ["NodeClass"],
        "ops.registration": ["register_op"],
        "partition.options": ["PartitionOptions"],
        "partition.recv_epochs": ["add_control_edges"],
        "partition.split": ["partition", "split_graph"],
        "passes.client_graph": [
            "RewriteMetadata",
            "build_client_graph",
            "client_graph",
            "prune_for_reverse_reachability",
            "rewrite_graph_for_execution",
        ],
        "passes.lower_functional": ["lower_functional"],
        "passes.optimising.optimizer": ["optimize"],
        "passes.registry": ["GraphContext", "GraphPass", "PartitionContext", "PartitionPass", "register_pass"],
        "passes.selection": ["Passes"],
        "protos": [
            "AttrValue",
            "ConfigProto",
            "CostGraphDef",
            "DeviceAttributes",
            "FunctionDefLibrary",
            "GraphDef",
            "GraphOptions",
            "MetaGraphDef",
            "NameAttrList",
            "NodeDef",
            "OpDef",
            "OpList",
            "RewriterConfig",
            "RunMetadata",
            "CallableOptions",
            "RunOptions",
            "SavedModel",
            "StepStats",
            "TensorProto",
            "TensorShapeProto",
            "VersionDef",
        ],
        "shape_inference.infer": ["infer_shapes"],
        "structured": ["cond", "while_loop"],
        "tensor": ["numpy_to_tensor", "tensor_to_numpy"],
        "tensor_id": ["TensorId", "parse_tensor_name"],
    },
)
