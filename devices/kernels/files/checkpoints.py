"""Kernels that write tensors to checkpoint files and read them back, in TensorFlow's format (see `graph/formats`).

A kernel that fails, or is killed, leaves the previous checkpoint; a step that is cancelled waits until the new one is
complete.
"""

from __future__ import annotations

import os

import numpy as np

from ....errors import InvalidArgumentError, NotFoundError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType, base_type, dtype_name
from ....graph.formats.bundle_merge import merge_bundles
from ....graph.formats.bundle_reader import BundleReader
from ....graph.formats.bundle_writer import BundleWriter
from ....graph.formats.slice_keys import decode_name
from ....graph.ops.files.tensor_slices import parse_shape_and_slice
from ..checks import decoded_spec, require, scalar_of, text_of
from ..registry import Construction, Kernel, kernel, outputs
from .first_checkpoints import from_slice_files, saved_part


def _prefix_and_parts(
    prefix: Array, names: Array, parts: Array, count: int, what: str
) -> tuple[str, list[str], list[str]]:
    """The common inputs of saving and restoring, as texts; InvalidArgumentError if they do not fit together."""
    require(prefix.size == 1, f"Input prefix should have a single element, got {prefix.size} instead.")
    require(
        names.ndim == 1 and parts.ndim == 1,
        "Input tensor_names and shape_and_slices should be an 1-D tensors, "
        f"got {shape_text(names.shape)} and {shape_text(parts.shape)} instead.",
    )
    require(
        names.size == parts.size,
        f"tensor_names and shape_and_slices have different number of elements: {names.size} vs. {parts.size}",
    )
    require(names.size == count, f"Got {names.size} tensor names{what}.")
    return os.fsdecode(prefix.item()), [decode_name(name) for name in names], [decoded_spec(part) for part in parts]


@kernel("SaveV2")
def save(node: Construction) -> Kernel:
    """Writes tensors, or parts of tensors, as one checkpoint."""
    dtypes = [base_type(dtype) for dtype in node.input_types[3:]]

    def write(prefix: Array, names: Array, parts: Array, *values: Array) -> None:
        path, keys, specs = _prefix_and_parts(prefix, names, parts, len(values), f" but {len(values)} tensors")
        with BundleWriter(path) as writer:
            for key, spec, value, dtype in zip(keys, specs, values, dtypes, strict=True):
                if spec:
                    _add_slice(writer, key, spec, value, dtype)
                else:
                    writer.add(key, value, dtype)

    return write


def _add_slice(writer: BundleWriter, name: str, spec: str, value: Array, dtype: DataType) -> None:
    shape, part = saved_part(spec, value)
    writer.add_slice(name, shape, part, value, dtype)


@kernel("RestoreV2")
def restore(node: Construction) -> Kernel:
    """Reads tensors, or parts of tensors, from a checkpoint; from one of the first format if there is no index."""
    dtypes = node.output_types

    def read(prefix: Array, names: Array, parts: Array) -> object:
        count = len(dtypes)
        path, keys, specs = _prefix_and_parts(prefix, names, parts, count, f", but {count} expected dtypes")
        try:
            reader = BundleReader(path)
        except NotFoundError:
            return outputs(from_slice_files(path, keys, specs, dtypes))
        with reader:
            _check_types(reader, keys, dtypes)
            return outputs([_restored(reader, key, spec) for key, spec in zip(keys, specs, strict=True)])

    return read


def _check_types(reader: BundleReader, names: list[str], dtypes: tuple[DataType, ...]) -> None:
    """NotFoundError for the first missing tensor, else InvalidArgumentError that names all of another type."""
    stored = [reader.dtype(name) for name in names]
    wrong = [
        f"tensor_name = {name}; expected dtype {dtype_name(expected)} does not equal original dtype {dtype_name(own)}"
        for name, expected, own in zip(names, dtypes, stored, strict=True)
        if expected != own
    ]
    if wrong:
        raise InvalidArgumentError("\n".join(wrong))


def _restored(reader: BundleReader, name: str, spec: str) -> Array:
    if not spec:
        return reader.read(name)
    shape, part = parse_shape_and_slice(spec)
    stored = reader.shape(name)
    require(
        shape == stored,
        f"tensor_name = {name}; shape in shape_and_slice spec {shape_text(shape)} does not match the shape stored in "
        f"checkpoint: {shape_text(stored)}",
    )
    return reader.read_slice(name, part)


@kernel("MergeV2Checkpoints")
def merge(node: Construction) -> Kernel:
    """Merges several checkpoints into one by moving their data files."""
    delete, allow = bool(node.attrs["delete_old_dirs"]), bool(node.attrs["allow_missing_files"])

    def merge_files(prefixes: Array, destination: Array) -> None:
        require(
            prefixes.ndim == 1,
            f"Input checkpoint_prefixes should be an 1-D tensor, got {shape_text(prefixes.shape)} instead.",
        )
        require(
            destination.ndim == 0,
            f"Input destination_prefix should be a scalar tensor, got {shape_text(destination.shape)} instead.",
        )
        sources = [os.fsdecode(prefix) for prefix in prefixes]
        merge_bundles(sources, os.fsdecode(destination.item()), delete_old_directories=delete, allow_missing=allow)

    return merge_files


def _text(value: str) -> Array:
    array = np.empty((), object)
    array[()] = os.fsencode(value)
    return array


@kernel("ShardedFilename")
def sharded_filename(node: Construction) -> Kernel:
    """The name of one of several files: "base-00003-of-00012"."""

    def name(base: Array, shard: Array, count: Array) -> Array:
        for what, value in (("basename", base), ("shard", shard), ("num_shards", count)):
            require(value.ndim == 0, f"{what} must be a scalar, got shape {shape_text(value.shape)}")
        return _text(f"{os.fsdecode(base.item())}-{shard:05d}-of-{count:05d}")

    return name


@kernel("ShardedFilespec")
def sharded_filespec(node: Construction) -> Kernel:
    """The pattern for all files of a sharded checkpoint: "base-?????-of-00012"."""

    def pattern(base: Array, count: Array) -> Array:
        return _text(f"{os.fsdecode(text_of(base, 'basename'))}-?????-of-{scalar_of(count, 'num_shards'):05d}")

    return pattern
