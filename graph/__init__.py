"""What is computed: graphs, how they are read and written, cut for a request, and cut over devices."""

from .dtypes import DataType
from .formats.saved_model import SavedGraph, load_saved_model
from .gradients import gradients
from .graph import EdgeArrays, Graph, Versions
from .graphdef.exporter import to_graph_def
from .graphdef.files import graph_def_from_text, graph_def_to_text, load_graph_def, save_graph_def
from .graphdef.importer import ImportOptions, ImportResults, graph_def_to_graph, import_graph_def
from .node import Edge, Node, NodeClass
from .ops.properties import NodeProperties
from .partition import PartitionOptions, add_control_edges, partition, split_graph
from .passes.client_graph import RewriteMetadata, build_client_graph, client_graph, rewrite_graph_for_execution
from .protos import (
    AttrValue,
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
from .tensor import numpy_to_tensor, tensor_to_numpy
from .tensor_id import TensorId, parse_tensor_name

__all__ = [
    "AttrValue",
    "ConfigProto",
    "CostGraphDef",
    "DataType",
    "DeviceAttributes",
    "Edge",
    "EdgeArrays",
    "FunctionDefLibrary",
    "Graph",
    "GraphDef",
    "GraphOptions",
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
    "PartitionOptions",
    "RewriteMetadata",
    "RewriterConfig",
    "RunMetadata",
    "RunOptions",
    "SavedGraph",
    "SavedModel",
    "StepStats",
    "TensorId",
    "TensorProto",
    "TensorShapeProto",
    "VersionDef",
    "Versions",
    "add_control_edges",
    "build_client_graph",
    "client_graph",
    "gradients",
    "graph_def_from_text",
    "graph_def_to_graph",
    "graph_def_to_text",
    "import_graph_def",
    "load_graph_def",
    "load_saved_model",
    "numpy_to_tensor",
    "parse_tensor_name",
    "partition",
    "rewrite_graph_for_execution",
    "save_graph_def",
    "split_graph",
    "tensor_to_numpy",
    "to_graph_def",
]
