"""Shape functions of tensor arrays.

A handle of version 2 or 3 is a vector of two; a flow, the scalar that orders the writes, has shape []. The shape of an
element that is read comes, in version 3, from the node that made the array (`graph/shape_inference/infer.py`). Of the
first version TensorFlow infers nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...analysis.shape_functions import ShapeContext, merge_dims, no_outputs, shape_fn, unknown, with_rank
from ...dtypes import Shape


def _handle(shape: Shape) -> Shape:
    """The shape of a tensor array's handle; InvalidArgumentError unless `shape` may be that."""
    return (merge_dims(with_rank(shape, 1)[0], 2),)


shape_fn("TensorArrayClose", "TensorArrayCloseV2", "TensorArrayCloseV3")(no_outputs)


_FIRST = ("Write", "Read", "Gather", "Scatter", "Concat", "Split", "Size", "Grad", "Pack", "Unpack")
shape_fn("TensorArray", *(f"TensorArray{name}" for name in _FIRST))(unknown)


@shape_fn("TensorArrayV2", "TensorArrayGradV2")
def second_tensor_array(c: ShapeContext) -> Sequence[Shape]:
    """The handle."""
    return ((2,),)


@shape_fn("TensorArrayV3", "TensorArrayGradV3", "TensorArrayGradWithShape")
def tensor_array(c: ShapeContext) -> Sequence[Shape]:
    """The handle and the flow; the size, or the handle of what is differentiated, must have its rank."""
    with_rank(c.inputs[0], 0 if c.op == "TensorArrayV3" else 1)
    return ((2,), ())


@shape_fn("TensorArrayWriteV2", "TensorArrayWriteV3")
def tensor_array_write(c: ShapeContext) -> Sequence[Shape]:
    """The flow after one write."""
    _handle(c.inputs[0]), with_rank(c.inputs[1], 0), with_rank(c.inputs[3], 0)
    return ((),)


@shape_fn("TensorArrayScatterV2", "TensorArrayScatterV3")
def tensor_array_scatter(c: ShapeContext) -> Sequence[Shape]:
    """The flow after writes at a list of indices."""
    _handle(c.inputs[0]), with_rank(c.inputs[1], 1), with_rank(c.inputs[3], 0)
    return ((),)


@shape_fn("TensorArraySplitV2", "TensorArraySplitV3")
def tensor_array_split(c: ShapeContext) -> Sequence[Shape]:
    """The flow after writes of pieces whose lengths are a list."""
    _handle(c.inputs[0]), with_rank(c.inputs[2], 1), with_rank(c.inputs[3], 0)
    return ((),)


@shape_fn("TensorArraySizeV2", "TensorArraySizeV3")
def tensor_array_size(c: ShapeContext) -> Sequence[Shape]:
    """A scalar."""
    _handle(c.inputs[0])
    return ((),)


@shape_fn("TensorArrayReadV2", "TensorArrayReadV3")
def tensor_array_read(c: ShapeContext) -> Sequence[Shape]:
    """Unknown unless the node that made the array declares it."""
    _handle(c.inputs[0]), with_rank(c.inputs[1], 0), with_rank(c.inputs[2], 0)
    return (None,)


@shape_fn("TensorArrayGatherV2")
def second_tensor_array_gather(c: ShapeContext) -> Sequence[Shape]:
    """Unknown."""
    _handle(c.inputs[0]), with_rank(c.inputs[1], 1), with_rank(c.inputs[2], 0)
    return (None,)


@shape_fn("TensorArrayGatherV3")
def tensor_array_gather(c: ShapeContext) -> Sequence[Shape]:
    """One element of the declared shape per index."""
    element: Shape = c.attrs["element_shape"]
    _handle(c.inputs[0]), with_rank(c.inputs[2], 0)
    return (None if element is None else (*with_rank(c.inputs[1], 1), *element),)


@shape_fn("TensorArrayConcatV2", "TensorArrayConcatV3")
def tensor_array_concat(c: ShapeContext) -> Sequence[Shape]:
    """All elements joined, of unknown shape, and their lengths."""
    _handle(c.inputs[0]), with_rank(c.inputs[1], 0)
    return (None, (None,))
