"""Shape functions of the ops on strings.

An op on each string keeps the shape; the number of tokens is known only in the run.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....errors import InvalidArgumentError
from ...analysis.dims import integer, integers, shape_text
from ...analysis.shape_functions import (
    ShapeContext,
    broadcast,
    merge,
    num_elements,
    scalar,
    shape_fn,
    unchanged,
    with_rank,
    with_rank_at_least,
)
from ...dtypes import Shape, item_size

shape_fn(
    "StringLength",
    "StringLower",
    "StringUpper",
    "StringStrip",
    "StringToNumber",
    "AsString",
    "EncodeBase64",
    "DecodeBase64",
    "StringToHashBucket",
    "StringToHashBucketFast",
    "StringToHashBucketStrong",
    "StaticRegexReplace",
    "StaticRegexFullMatch",
    "DecodeCompressed",
)(unchanged)


@shape_fn("StringJoin")
def string_join(c: ShapeContext) -> Sequence[Shape]:
    """The merged shape of all inputs that are not scalars; an input of unknown rank may be a scalar."""
    shaped = [x for x in c.inputs if x is None or len(x)]
    known: Shape = None
    for x in shaped:
        known = merge(known, x)
    return (known if shaped else (),)


@shape_fn("Substr")
def substr(c: ShapeContext) -> Sequence[Shape]:
    """Strings and positions broadcast."""
    position, count = c.inputs[1], c.inputs[2]
    if position and position != count:  # a size that only one of them knows counts as a difference
        known = "?" if count is None else shape_text(count)
        raise InvalidArgumentError(f"pos and len shapes must match: {shape_text(position)} vs. {known}")
    return (broadcast(c.inputs[0], merge(position, count)),)


@shape_fn("StringSplit", "StringSplitV2")
def string_split(c: ShapeContext) -> Sequence[Shape]:
    """The three parts of a sparse matrix."""
    with_rank(c.inputs[0], 1)
    with_rank(c.inputs[1], 0)
    return ((None, 2), (None,), (2,))


@shape_fn("RegexReplace")
def regex_replace(c: ShapeContext) -> Sequence[Shape]:
    with_rank(c.inputs[1], 0)
    with_rank(c.inputs[2], 0)
    return (c.inputs[0],)


@shape_fn("RegexFullMatch")
def regex_full_match(c: ShapeContext) -> Sequence[Shape]:
    with_rank(c.inputs[1], 0)
    return (c.inputs[0],)


@shape_fn("ReduceJoin")
def reduce_join(c: ShapeContext) -> Sequence[Shape]:
    """The input's shape without the joined axes, or with ones in their place."""
    source, axes = c.inputs[0], integers(c, 1)
    if source is None:
        return (None,)
    if axes is None:
        return ((None,) * len(source) if c.attrs["keep_dims"] else None,)
    joined = set()
    for axis in axes:
        if not -len(source) <= axis < len(source):
            raise InvalidArgumentError(f"Invalid reduction dimension {axis} for input with {len(source)} dimension(s)")
        joined.add(axis % len(source))
    if c.attrs["keep_dims"]:
        return (tuple(1 if i in joined else size for i, size in enumerate(source)),)
    return (tuple(size for i, size in enumerate(source) if i not in joined),)


@shape_fn("UnsortedSegmentJoin")
def unsorted_segment_join(c: ShapeContext) -> Sequence[Shape]:
    """The number of segments, then the shape of one string's worth of the input."""
    source, segments = c.inputs[0], c.inputs[1]
    with_rank(c.inputs[2], 0)
    if source is None or segments is None:
        return (None,)
    merge(source[: len(segments)], segments)
    return ((integer(c, 2), *source[len(segments) :]),)


@shape_fn("StringNGrams")
def string_ngrams(c: ShapeContext) -> Sequence[Shape]:
    """A vector of unknown length, and as many splits as there were."""
    with_rank(c.inputs[0], 1)
    return ((None,), with_rank(c.inputs[1], 1))


@shape_fn("DecodeRaw")
def decode_raw(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the strings with an unknown number of elements each."""
    source = c.inputs[0]
    return (None if source is None else (*source, None),)


@shape_fn("DecodePaddedRaw")
def decode_padded_raw(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the strings, with the number of elements that fit the fixed length as a new size."""
    source, size = c.inputs[0], integer(c, 1)
    width = item_size(c.output_types[0])
    if size is not None and size % width:
        raise InvalidArgumentError(f"Dimension size must be evenly divisible by {width} but is {size}")
    if source is None:
        return (None,)
    return ((*source, None if size is None else size // width),)


@shape_fn("Fingerprint")
def fingerprint(c: ShapeContext) -> Sequence[Shape]:
    """Eight bytes for each entry of the first axis."""
    source = with_rank_at_least(c.inputs[0], 1)
    with_rank(c.inputs[1], 0)
    return ((None if source is None else source[0], 8),)


shape_fn("SerializeTensor")(scalar)
shape_fn("UnicodeTranscode", "UnicodeScript")(unchanged)


@shape_fn("StringFormat")
def string_format(c: ShapeContext) -> Sequence[Shape]:
    """One string; the template has a placeholder for each input."""
    places = c.attrs["template"].split(c.attrs["placeholder"])
    if len(places) - 1 != len(c.inputs):
        raise InvalidArgumentError(
            f"num placeholders in template and num inputs must match: {len(places) - 1} vs. {len(c.inputs)}"
        )
    return ((),)


@shape_fn("ParseTensor")
def parse_tensor(c: ShapeContext) -> Sequence[Shape]:
    with_rank(c.inputs[0], 0)
    return (None,)


@shape_fn("UnicodeDecode", "UnicodeDecodeWithOffsets")
def unicode_decode(c: ShapeContext) -> Sequence[Shape]:
    """One split more than there are strings, and the code points and their places."""
    count = num_elements(c.inputs[0])
    return ((None if count is None else count + 1,), *[(None,)] * (len(c.output_types) - 1))


@shape_fn("UnicodeEncode")
def unicode_encode(c: ShapeContext) -> Sequence[Shape]:
    """One string fewer than there are splits."""
    with_rank(c.inputs[0], 1)
    (splits,) = with_rank(c.inputs[1], 1)
    return ((None if splits is None else splits - 1,),)


@shape_fn("DecodeCSV")
def decode_csv(c: ShapeContext) -> Sequence[Shape]:
    """The shape of the records for every column; a default has at most one element."""
    for default in c.inputs[1:]:
        if default is not None and len(default) > 1:
            raise InvalidArgumentError(f"Shape must be at most rank 1 but is rank {len(default)}")
        if default and default[0] is not None and default[0] > 1:
            raise InvalidArgumentError("Shape of a default must be a length-0 or length-1 vector, or a scalar.")
    return (c.inputs[0],) * len(c.output_types)
