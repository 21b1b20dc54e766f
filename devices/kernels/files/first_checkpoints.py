"""Kernels that save and restore checkpoints of TensorFlow's first format (see `graph/formats/slice_files.py`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from operator import itemgetter

from ....errors import NotFoundError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, DataType, base_type, dtype_name
from ....graph.formats.slice_files import SliceFiles, SliceFileWriter
from ....graph.formats.slice_keys import decode_name
from ....graph.ops.files.tensor_slices import TensorSlice, parse_shape_and_slice
from ..checks import decoded_spec, require, single_of
from ..registry import Construction, Kernel, kernel
from .patterns import matching_files


def saved_part(spec: str, value: Array) -> tuple[tuple[int, ...], TensorSlice]:
    """The full shape and the slice in a text, which must fit the value."""
    shape, part = parse_shape_and_slice(spec)
    require(
        part.shape_in(shape) == value.shape,
        "Slice in shape_and_slice specification does not match the shape of the tensor to  save: "
        f"{spec}, tensor: {shape_text(value.shape)}",
    )
    return shape, part


@kernel("Save")
def save_first_format(node: Construction) -> Kernel:
    """Writes whole tensors as one file of the first format."""
    write = _slice_file_writer(node.input_types[2:])
    return lambda path, names, *values: write(path, names, [b""] * names.size, values)


@kernel("SaveSlices")
def save_slices(node: Construction) -> Kernel:
    """Writes tensors, or parts of tensors, as one file of the first format."""
    write = _slice_file_writer(node.input_types[3:])
    return lambda path, names, parts, *values: write(path, names, parts.reshape(-1).tolist(), values)


def _slice_file_writer(types: Sequence[int]) -> Callable[[Array, Array, list[bytes], Sequence[Array]], None]:
    dtypes = [base_type(dtype) for dtype in types]

    def write(path: Array, names: Array, parts: list[bytes], values: Sequence[Array]) -> None:
        require(
            names.ndim == 1 and names.size == len(parts) == len(values),
            f"Got {names.size} tensor names but {len(values)} tensors",
        )
        writer = SliceFileWriter()
        for name, spec, value, dtype in sorted(zip(names, parts, values, dtypes, strict=True), key=itemgetter(0)):
            shape, part = value.shape, TensorSlice((None,) * value.ndim)
            if spec:
                shape, part = saved_part(decoded_spec(spec), value)
            writer.add(decode_name(name), shape, part, value, dtype)
        writer.write(os.fsdecode(single_of(path, "filename")))

    return write


@kernel("Restore")
def restore_first_format(node: Construction) -> Kernel:
    """Reads a tensor from files of the first format, whose names match a pattern."""
    dtype = node.output_types[0]

    def read(pattern: Array, name: Array) -> Array:
        path, names = single_of(pattern, "file_pattern"), [decode_name(single_of(name, "tensor_name"))]
        return from_slice_files(os.fsdecode(path), names, [""], [dtype])[0]

    return read


@kernel("RestoreSlice")
def restore_slice(node: Construction) -> Kernel:
    """Reads a part of a tensor from files of the first format."""
    dtype = node.output_types[0]

    def read(pattern: Array, name: Array, spec: Array) -> Array:
        names, specs = [decode_name(single_of(name, "tensor_name"))], [decoded_spec(single_of(spec, "shape_and_slice"))]
        return from_slice_files(os.fsdecode(single_of(pattern, "file_pattern")), names, specs, [dtype])[0]

    return read


def from_slice_files(
    pattern: str, names: Sequence[str], specs: Sequence[str], dtypes: Sequence[DataType]
) -> list[Array]:
    """Tensors, or parts of tensors, of a checkpoint of the first format."""
    try:
        paths = sorted(matching_files(pattern))
    except OSError:  # no file can have such a name
        paths = []
    if not paths:
        raise NotFoundError(
            f"Unsuccessful TensorSliceReader constructor: Failed to find any matching files for {pattern}"
        )
    files = SliceFiles(paths)
    values = []
    for name, spec, dtype in zip(names, specs, dtypes, strict=True):
        if name not in files:
            raise NotFoundError(f'Tensor name "{name}" not found in checkpoint files {pattern}')
        stored = files.dtype(name)
        require(
            stored == dtype,
            f"Expected to restore a tensor of type {dtype_name(dtype)}, got a tensor of type {dtype_name(stored)} "
            f"instead: tensor_name = {name}",
        )
        values.append(_part_in_slice_files(files, name, spec))
    return values


def _part_in_slice_files(files: SliceFiles, name: str, spec: str) -> Array:
    if not spec:
        return files.read(name)
    shape, part = parse_shape_and_slice(spec)
    stored = files.shape(name)
    require(
        shape == stored,
        "Shape in shape_and_slice spec does not match the shape in the save file: "
        f"{shape_text(shape)}, save file shape: {shape_text(stored)}",
    )
    return files.read_slice(name, part)
