"""What is computed: graphs, how they are made, read and written, changed by passes, and cut over devices.

In: a GraphDef, from a file, a message, a `GraphBuilder` or a SavedModel. Out: GraphDefs, or one `Graph` per device.

    >>> b = GraphBuilder()
    >>> x = b.placeholder("x", "float32", (None, 2))
    >>> y = b.op("Neg", x, name="y")
    >>> graph = b.graph()
    >>> print(graph)
    2 nodes
    x: float = Placeholder() {shape=[?,2]}
    y: float = Neg(x)
    >>> infer_shapes(graph, {"x": (3, 2)})["y"]
    ((3, 2),)

    graph.py, columns.py, node.py     the graph itself: columns, and views of single nodes and edges
    graphdef/ builder/ formats/       GraphDef -> Graph, node by node, from checkpoints and SavedModels
    ops/ library/ functions/          what an op is; functions that nodes call, and their bodies
    analysis/ shape_inference/        facts about a graph: loops, shapes, costs
    passes/ gradients/ partition/     Graph -> Graph: lowering, pruning, folding, gradients, one graph per device

Names are imported when they are first used: a program that only builds graphs loads no passes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import load_lazily

if TYPE_CHECKING:
    from .analysis.gradient_rules import Forward as Forward, gradient as gradient
    from .analysis.shape_functions import ShapeContext as ShapeContext, shape_fn as shape_fn, with_rank as with_rank
    from .builder.builder import GraphBuilder as GraphBuilder
    from .builder.handles import Operation as Operation, Tensor as Tensor
    from .checked_import import import_graph_def as import_graph_def
    from .columns import EdgeArrays as EdgeArrays
    from .display.progress import (
        Progress as Progress,
        ProgressCallback as ProgressCallback,
        TimedProgress as TimedProgress,
    )
    from .dtypes import DataType as DataType
    from .exporter import to_graph_def as to_graph_def
    from .formats.bundle_reader import BundleReader as BundleReader
    from .formats.bundle_writer import BundleWriter as BundleWriter
    from .formats.saved_model import SavedGraph as SavedGraph, load_saved_model as load_saved_model
    from .functions.call_frame import FunctionCallFrame as FunctionCallFrame
    from .gradients.backward import gradients as gradients
    from .graph import Graph as Graph
    from .graphdef.files import (
        graph_def_from_text as graph_def_from_text,
        graph_def_to_text as graph_def_to_text,
        load_graph_def as load_graph_def,
        save_graph_def as save_graph_def,
    )
    from .graphdef.import_options import ImportOptions as ImportOptions, ImportResults as ImportResults
    from .graphdef.importer import graph_def_to_graph as graph_def_to_graph
    from .node import Edge as Edge, Node as Node
    from .ops.properties import NodeProperties as NodeProperties
    from .ops.record import NodeClass as NodeClass
    from .ops.registration import register_op as register_op
    from .parallel.mesh.mesh import Mesh as Mesh
    from .parallel.mesh.rank_program import RankProgram as RankProgram
    from .parallel.mesh.reduce_gradients import reduce_gradients as reduce_gradients
    from .parallel.mesh.write_out import as_representatives as as_representatives, write_out as write_out
    from .parallel.pipeline import pipeline as pipeline
    from .parallel.pipelines.schedules import (
        PipelineShape as PipelineShape,
        Schedule as Schedule,
        StageCall as StageCall,
        find_schedule as find_schedule,
        register_schedule as register_schedule,
    )
    from .parallel.pipelines.timetables import Timetable as Timetable
    from .parallel.recompute import recompute as recompute
    from .parallel.replicate import replicate as replicate
    from .partition.options import PartitionOptions as PartitionOptions
    from .partition.recv_epochs import add_control_edges as add_control_edges
    from .partition.split import partition as partition, split_graph as split_graph
    from .passes.client_graph import (
        RewriteMetadata as RewriteMetadata,
        build_client_graph as build_client_graph,
        client_graph as client_graph,
        prune_for_reverse_reachability as prune_for_reverse_reachability,
        rewrite_graph_for_execution as rewrite_graph_for_execution,
    )
    from .passes.client_request import ClientRequest as ClientRequest
    from .passes.lower_functional import lower_functional as lower_functional
    from .passes.optimising.optimizer import optimize as optimize
    from .passes.registry import (
        GraphContext as GraphContext,
        GraphPass as GraphPass,
        PartitionContext as PartitionContext,
        PartitionPass as PartitionPass,
        register_pass as register_pass,
    )
    from .passes.selection import Passes as Passes
    from .protos import (
        AttrValue as AttrValue,
        CallableOptions as CallableOptions,
        ConfigProto as ConfigProto,
        CostGraphDef as CostGraphDef,
        DeviceAttributes as DeviceAttributes,
        FunctionDefLibrary as FunctionDefLibrary,
        GraphDef as GraphDef,
        GraphOptions as GraphOptions,
        MetaGraphDef as MetaGraphDef,
        NameAttrList as NameAttrList,
        NodeDef as NodeDef,
        OpDef as OpDef,
        OpList as OpList,
        RewriterConfig as RewriterConfig,
        RunMetadata as RunMetadata,
        RunOptions as RunOptions,
        SavedModel as SavedModel,
        StepStats as StepStats,
        TensorProto as TensorProto,
        TensorShapeProto as TensorShapeProto,
        VersionDef as VersionDef,
    )
    from .shape_inference.infer import infer_shapes as infer_shapes
    from .structured import cond as cond, while_loop as while_loop
    from .tensor import numpy_to_tensor as numpy_to_tensor, tensor_to_numpy as tensor_to_numpy
    from .tensor_id import TensorId as TensorId, parse_tensor_name as parse_tensor_name
    from .versions import Versions as Versions

load_lazily(__name__)
