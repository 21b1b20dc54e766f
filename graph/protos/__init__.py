"""Messages that are wire-compatible with TensorFlow's, under names of our own so that both can live in one process.

Flows in and out: bytes. The modules beside this file are generated from the .proto files by `tools/generate_protos.sh`;
a test regenerates and compares them. `LazyGraphDef` is a GraphDef whose attrs stay undecoded bytes until asked for.
"""

from .attr_value_pb2 import AttrValue as AttrValue, NameAttrList as NameAttrList
from .config_pb2 import (
    CallableOptions as CallableOptions,
    ClusterDef as ClusterDef,
    ConfigProto as ConfigProto,
    DebugOptions as DebugOptions,
    GPUOptions as GPUOptions,
    GraphOptions as GraphOptions,
    JobDef as JobDef,
    OptimizerOptions as OptimizerOptions,
    RewriterConfig as RewriterConfig,
    RunMetadata as RunMetadata,
    RunOptions as RunOptions,
)
from .cost_graph_pb2 import CostGraphDef as CostGraphDef
from .debug_info_pb2 import GraphDebugInfo as GraphDebugInfo
from .device_attributes_pb2 import DeviceAttributes as DeviceAttributes, DeviceLocality as DeviceLocality
from .example_pb2 import (
    Example as Example,
    Feature as Feature,
    LazyExample as LazyExample,
    LazyFeatureList as LazyFeatureList,
    LazySequenceExample as LazySequenceExample,
)
from .graph_pb2 import (
    FunctionDef as FunctionDef,
    FunctionDefLibrary as FunctionDefLibrary,
    GradientDef as GradientDef,
    GraphDef as GraphDef,
    NodeDef as NodeDef,
    VersionDef as VersionDef,
)
from .lazy_graph_pb2 import (
    GraphNodes as GraphNodes,
    LazyAttr as LazyAttr,
    LazyGraphDef as LazyGraphDef,
    LazyNodeDef as LazyNodeDef,
)
from .meta_graph_pb2 import (
    AssetFileDef as AssetFileDef,
    CollectionDef as CollectionDef,
    MetaGraphDef as MetaGraphDef,
    SavedModel as SavedModel,
    SaverDef as SaverDef,
    SignatureDef as SignatureDef,
    TensorInfo as TensorInfo,
    VariableDef as VariableDef,
)
from .op_def_pb2 import OpDef as OpDef, OpDeprecation as OpDeprecation, OpList as OpList
from .perfetto_pb2 import (
    DebugAnnotation as DebugAnnotation,
    InternedData as InternedData,
    InternedText as InternedText,
    PerfettoTrace as PerfettoTrace,
    TracePacket as TracePacket,
    TrackDescriptor as TrackDescriptor,
    TrackEvent as TrackEvent,
)
from .reader_state_pb2 import ReaderBaseState as ReaderBaseState
from .step_stats_pb2 import (
    AllocationDescription as AllocationDescription,
    AllocatorMemoryUsed as AllocatorMemoryUsed,
    DeviceStepStats as DeviceStepStats,
    NodeExecStats as NodeExecStats,
    NodeOutput as NodeOutput,
    StepStats as StepStats,
    TensorDescription as TensorDescription,
)
from .summary_pb2 import (
    Event as Event,
    HistogramProto as HistogramProto,
    SourceMetadata as SourceMetadata,
    Summary as Summary,
    SummaryMetadata as SummaryMetadata,
    TaggedRunMetadata as TaggedRunMetadata,
)
from .tensor_bundle_pb2 import BundleEntryProto as BundleEntryProto, BundleHeaderProto as BundleHeaderProto
from .tensor_pb2 import (
    ResourceHandleProto as ResourceHandleProto,
    TensorProto as TensorProto,
    TensorShapeProto as TensorShapeProto,
    TensorSliceProto as TensorSliceProto,
    VariantTensorDataProto as VariantTensorDataProto,
)
from .tensor_slices_pb2 import (
    SavedSlice as SavedSlice,
    SavedSliceMeta as SavedSliceMeta,
    SavedTensorSliceMeta as SavedTensorSliceMeta,
    SavedTensorSlices as SavedTensorSlices,
)
