"""Messages that are wire-compatible with TensorFlow's, under names of our own so that both can live in one process.

Flows in and out: bytes. The modules beside this file are generated from the .proto files by `tools/generate_protos.sh`;
a test regenerates and compares them. `LazyGraphDef` is a GraphDef whose attrs stay undecoded bytes until asked for.
"""

from .attr_value_pb2 import AttrValue, NameAttrList
from .config_pb2 import (
    CallableOptions,
    ClusterDef,
    ConfigProto,
    DebugOptions,
    GPUOptions,
    GraphOptions,
    JobDef,
    OptimizerOptions,
    RewriterConfig,
    RunMetadata,
    RunOptions,
)
from .cost_graph_pb2 import CostGraphDef
from .debug_info_pb2 import GraphDebugInfo
from .device_attributes_pb2 import DeviceAttributes, DeviceLocality
from .example_pb2 import Example, Feature, LazyExample, LazyFeatureList, LazySequenceExample
from .graph_pb2 import FunctionDef, FunctionDefLibrary, GradientDef, GraphDef, NodeDef, VersionDef
from .lazy_graph_pb2 import LazyAttr, LazyGraphDef, LazyNodeDef
from .meta_graph_pb2 import (
    AssetFileDef,
    CollectionDef,
    MetaGraphDef,
    SavedModel,
    SaverDef,
    SignatureDef,
    TensorInfo,
    VariableDef,
)
from .op_def_pb2 import OpDef, OpDeprecation, OpList
from .reader_state_pb2 import ReaderBaseState
from .step_stats_pb2 import (
    AllocationDescription,
    AllocatorMemoryUsed,
    DeviceStepStats,
    NodeExecStats,
    NodeOutput,
    StepStats,
    TensorDescription,
)
from .summary_pb2 import Event, HistogramProto, SourceMetadata, Summary, SummaryMetadata
from .tensor_bundle_pb2 import BundleEntryProto, BundleHeaderProto
from .tensor_pb2 import ResourceHandleProto, TensorProto, TensorShapeProto, TensorSliceProto, VariantTensorDataProto
from .tensor_slices_pb2 import SavedSlice, SavedSliceMeta, SavedTensorSliceMeta, SavedTensorSlices

__all__ = [
    "AllocationDescription",
    "AllocatorMemoryUsed",
    "AssetFileDef",
    "AttrValue",
    "BundleEntryProto",
    "BundleHeaderProto",
    "CallableOptions",
    "ClusterDef",
    "CollectionDef",
    "ConfigProto",
    "CostGraphDef",
    "DebugOptions",
    "DeviceAttributes",
    "DeviceLocality",
    "DeviceStepStats",
    "Event",
    "Example",
    "Feature",
    "FunctionDef",
    "FunctionDefLibrary",
    "GPUOptions",
    "GradientDef",
    "GraphDebugInfo",
    "GraphDef",
    "GraphOptions",
    "HistogramProto",
    "JobDef",
    "LazyAttr",
    "LazyExample",
    "LazyFeatureList",
    "LazyGraphDef",
    "LazyNodeDef",
    "LazySequenceExample",
    "MetaGraphDef",
    "NameAttrList",
    "NodeDef",
    "NodeExecStats",
    "NodeOutput",
    "OpDef",
    "OpDeprecation",
    "OpList",
    "OptimizerOptions",
    "ReaderBaseState",
    "ResourceHandleProto",
    "RewriterConfig",
    "RunMetadata",
    "RunOptions",
    "SavedModel",
    "SavedSlice",
    "SavedSliceMeta",
    "SavedTensorSliceMeta",
    "SavedTensorSlices",
    "SaverDef",
    "SignatureDef",
    "SourceMetadata",
    "StepStats",
    "Summary",
    "SummaryMetadata",
    "TensorDescription",
    "TensorInfo",
    "TensorProto",
    "TensorShapeProto",
    "TensorSliceProto",
    "VariableDef",
    "VariantTensorDataProto",
    "VersionDef",
]
