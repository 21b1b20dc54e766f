"""SavedModels: folders with a graph, the values of its variables and its signatures.

    saved_model.pb or .pbtxt        the graphs, each with its tags
    variables/variables.*           a checkpoint (see `bundle_reader`), missing if there are no variables
    assets/                         files that the graph reads

Loading opens the graph's file only. Nothing is removed from the graph; stripped default attrs are filled in, in
functions too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from ...errors import DataLossError, InvalidArgumentError, NotFoundError, OutOfRangeError
from ..dtypes import DataType, Shape
from ..graphdef.default_attrs import add_defaults, add_defaults_to_graph_def, graph_lookup
from ..graphdef.files import as_path
from ..ops.registry import OpSignature, lookup_op
from ..protos import AssetFileDef, GraphDef, MetaGraphDef, OpList, SavedModel, SignatureDef, TensorInfo
from ..suggestions import meant
from ..tensor import shape_from_proto, tensor_to_numpy
from .bundle_index import index_file
from .storage import file_errors, read_file
from .wire import is_cut_short

if TYPE_CHECKING:
    from ..dtypes import Array
    from ..graphdef.default_attrs import Lookup

SERVING_TAGS = ("serve",)
DEFAULT_SIGNATURE = "serving_default"
_INIT_SIGNATURE = "__saved_model_init_op"
_INIT_COLLECTIONS = ("saved_model_main_op", "legacy_init_op")
_ASSETS = "saved_model_assets"


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor of the graph that a signature names, with its declared type and shape."""

    tensor: str
    dtype: DataType
    shape: Shape


@dataclass(frozen=True, slots=True)
class Signature:
    """Names of tensors to feed and to fetch together. A sparse or composite tensor has one name per component."""

    inputs: Mapping[str, TensorSpec]
    outputs: Mapping[str, TensorSpec]
    method: str = ""
    defaults: Mapping[str, Array] = field(default_factory=dict)
    """default values of inputs, which need not be fed"""


@dataclass(frozen=True, slots=True)
class SavedGraph:
    """One graph of a SavedModel. Names of nodes and tensors are those of `graph_def`.

    Before a signature can run, `restore_op` must run with `filename_tensor` fed with `variables`, and then `init_op`;
    both with `assets` fed. Each is None, or empty, if the graph has none.
    """

    folder: Path
    tags: frozenset[str]
    graph_def: GraphDef
    signatures: Mapping[str, Signature]
    filename_tensor: str | None
    save_tensor: str | None
    restore_op: str | None
    init_op: str | None
    assets: Mapping[str, Path]

    @property
    def variables(self) -> str:
        """Prefix of the checkpoint of the variables."""
        return str(self.folder / "variables" / "variables")

    @property
    def has_variables(self) -> bool:
        """Whether that checkpoint exists; a model without variables may lack it."""
        index = index_file(self.variables)
        with file_errors(index):
            return Path(index).exists()

    def signature(self, name: str) -> Signature:
        """The signature of that name; NotFoundError, which lists the names, if there is none."""
        signature = self.signatures.get(name)
        if signature is None:
            known = ", ".join(map(repr, self.signatures)) or "none"
            hint = meant(name, self.signatures)
            raise NotFoundError(f"SavedModel {str(self.folder)!r} has no signature {name!r}; it has {known}{hint}")
        return signature


def load_saved_model(folder: str | Path, tags: Iterable[str] = SERVING_TAGS) -> SavedGraph:
    """Reads the graph of a SavedModel that has exactly these tags.

    Raises NotFoundError for a missing SavedModel or unknown tags, OutOfRangeError for a truncated file, DataLossError
    for other damage and InvalidArgumentError for a graph with contradictory entries.
    """
    folder, wanted = as_path(folder, "SavedModel"), frozenset((tags,) if isinstance(tags, str) else tags)
    meta_graph = _chosen(_read(folder), wanted)
    info = meta_graph.meta_info_def
    _fill_defaults(meta_graph.graph_def, info.stripped_op_list)
    saver = meta_graph.saver_def
    return SavedGraph(
        folder=folder,
        tags=wanted,
        graph_def=meta_graph.graph_def,
        signatures={n: _signature(s) for n, s in sorted(meta_graph.signature_def.items()) if n != _INIT_SIGNATURE},
        filename_tensor=saver.filename_tensor_name or None,
        save_tensor=saver.save_tensor_name or None,
        restore_op=_node_name(saver.restore_op_name),
        init_op=_node_name(_init_op(meta_graph)),
        assets={asset.tensor_info.name: folder / "assets" / asset.filename for asset in _assets(meta_graph)},
    )


def _read(folder: Path) -> SavedModel:
    """The SavedModel message in a folder; the binary file is preferred."""
    binary, text = folder / "saved_model.pb", folder / "saved_model.pbtxt"
    with file_errors(folder):
        is_binary, is_text = binary.is_file(), text.is_file()
    if is_binary:
        data = read_file(binary)
        try:
            return SavedModel.FromString(data)
        except DecodeError as error:
            if is_cut_short(data):
                raise OutOfRangeError(f"Read less bytes than requested: {binary} is cut short") from error
            raise DataLossError(f"Can't parse {binary} as binary proto") from error
    if is_text:
        try:
            return text_format.Parse(read_file(text).decode("utf-8", "replace"), SavedModel(), allow_unknown_field=True)
        except text_format.ParseError as error:
            raise DataLossError(f"Can't parse {text} as text proto: {error}") from error
    raise NotFoundError(
        f"Could not find SavedModel .pb or .pbtxt at supplied export directory path: {folder}. "
        "Check that the directory exists and that you have the right permissions for accessing it."
    )


def _chosen(model: SavedModel, tags: frozenset[str]) -> MetaGraphDef:
    for meta_graph in model.meta_graphs:
        if frozenset(meta_graph.meta_info_def.tags) == tags:
            return meta_graph
    raise NotFoundError(
        f"Could not find meta graph def matching supplied tags: {{ {' '.join(sorted(tags))} }}. "
        "To inspect available tag-sets in the SavedModel, please use the SavedModel CLI: `saved_model_cli`"
    )


def _fill_defaults(graph_def: GraphDef, stripped: OpList) -> None:
    """Fills in default attrs, also of ops that only the model's own op list has; the importer reports unknown ops."""
    lookup = _lookup_with(stripped)
    add_defaults_to_graph_def(graph_def, skip_unknown_ops=True, lookup=lookup)
    find = graph_lookup(graph_def, lookup)
    for function in graph_def.library.function:
        for node in function.node_def:
            try:
                add_defaults(node, find(node.op))
            except NotFoundError:
                continue


def _lookup_with(stripped: OpList) -> Lookup:
    """A look-up that searches the registry, then the op list of the model."""
    own = {op.name: op for op in stripped.op}

    def find(name: str) -> OpSignature:
        try:
            return lookup_op(name)
        except NotFoundError:
            if name not in own:
                raise
            return OpSignature(own[name])

    return find


def _signature(message: SignatureDef) -> Signature:
    return Signature(
        dict(_specs(message.inputs)),
        dict(_specs(message.outputs)),
        message.method_name,
        {name: tensor_to_numpy(value) for name, value in message.defaults.items()},
    )


def _specs(tensors: Mapping[str, TensorInfo]) -> Iterator[tuple[str, TensorSpec]]:
    for name, info in sorted(tensors.items()):
        yield from _components(name, info)


def _components(name: str, info: TensorInfo) -> Iterator[tuple[str, TensorSpec]]:
    """The tensors of an entry: several for sparse and composite tensors, else one of the entry's name."""
    match info.WhichOneof("encoding"):
        case "coo_sparse":
            sparse, dtype = info.coo_sparse, DataType(info.dtype)
            yield f"{name}/values", TensorSpec(sparse.values_tensor_name, dtype, (None,))
            yield f"{name}/indices", TensorSpec(sparse.indices_tensor_name, DataType.INT64, (None, None))
            yield f"{name}/dense_shape", TensorSpec(sparse.dense_shape_tensor_name, DataType.INT64, (None,))
        case "composite_tensor":
            for number, component in enumerate(info.composite_tensor.components):
                yield from _components(f"{name}/{number}", component)
        case _:
            yield name, TensorSpec(info.name, DataType(info.dtype), shape_from_proto(info.tensor_shape))


def _init_op(meta_graph: MetaGraphDef) -> str:
    """The node that initialises tables and other resources; empty if there is none."""
    signature = meta_graph.signature_def.get(_INIT_SIGNATURE)
    if signature is not None and _INIT_SIGNATURE in signature.outputs:
        return signature.outputs[_INIT_SIGNATURE].name
    for key in _INIT_COLLECTIONS:
        if key in meta_graph.collection_def:
            nodes = meta_graph.collection_def[key].node_list.value
            if len(nodes) != 1:
                raise InvalidArgumentError(f"Expected exactly one main op in : {list(nodes)}")
            return nodes[0]
    return ""


def _node_name(name: str) -> str | None:
    return name.partition(":")[0] or None


def _assets(meta_graph: MetaGraphDef) -> Iterable[AssetFileDef]:
    """The files that the graph reads: newer models list them in a field, older ones in a collection."""
    if meta_graph.asset_file_def:
        return meta_graph.asset_file_def
    if _ASSETS not in meta_graph.collection_def:
        return ()
    try:
        return [AssetFileDef.FromString(item.value) for item in meta_graph.collection_def[_ASSETS].any_list.value]
    except DecodeError as error:
        raise DataLossError(f"the collection {_ASSETS!r} of the SavedModel holds no list of files") from error
