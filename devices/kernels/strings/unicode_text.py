"""Kernels between strings in some encoding and Unicode code points.

Ill-formed bytes become one replacement per ill-formed part (Unicode's recommended practice, which Python's decoders
follow), are left out, or are an error, as the attrs say. Control characters below U+0020 count as ill-formed if they
are to be replaced.
"""

from __future__ import annotations

import codecs
import gzip
import json
from collections.abc import Callable, Iterable
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.analysis.dims import shape_text
from ....graph.dtypes import Array, numpy_dtype
from ..checks import require
from ..registry import Construction, Kernel, kernel, simple
from .each_string import each, strings

_ILL_FORMED = 0xDF00  # with the number of bytes added, a surrogate: no decoder gives one for well-formed input
_MOST_BYTES = 0xFF  # of an ill-formed part
_LEFT_OUT = -1
_UNKNOWN_SCRIPT = -1
_WITHOUT_MARK = {"utf-16": "utf-16-le", "utf-32": "utf-32-le", "utf-8-sig": "utf-8"}
"""codecs that write a byte order mark, and ones of equal width that do not"""
_SCRIPTS_FILE = Path(__file__).with_name("unicode_scripts.json.gz")


def _mark(error: UnicodeError) -> tuple[str, int]:
    """One mark for an ill-formed part, which says how long the part is; then the decoder goes on behind it."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return chr(_ILL_FORMED + min(error.end - error.start, _MOST_BYTES)), error.end


codecs.register_error("partita.mark", _mark)


def _is_mark(point: int) -> bool:
    return _ILL_FORMED <= point <= _ILL_FORMED + _MOST_BYTES


def _codec(name: bytes) -> str:
    try:
        return codecs.lookup(name.decode()).name
    except (LookupError, UnicodeDecodeError):
        text = name.decode(errors="replace")
        raise InvalidArgumentError(f"Could not create converter for input encoding: {text}") from None


def _mended(points: Iterable[int], is_wrong: Callable[[int], bool], node: Construction, message: str) -> list[int]:
    """`points` with wrong ones replaced, left out (as -1) or refused, as the attr `errors` says."""
    errors, replacement = node.attrs["errors"], node.attrs["replacement_char"]
    code_points = list(points)
    if not any(map(is_wrong, code_points)):
        return code_points
    if errors == b"strict":
        raise InvalidArgumentError(message)
    instead = _LEFT_OUT if errors == b"ignore" else replacement
    return [instead if is_wrong(point) else point for point in code_points]


def _kept(points: Iterable[int]) -> list[int]:
    return [point for point in points if point != _LEFT_OUT]


def _marked(codec: str, value: bytes) -> list[int]:
    """The code points of a string, with marks for ill-formed parts."""
    return list(map(ord, codecs.decode(value, codec, "partita.mark")))


def _mender(node: Construction) -> Callable[[list[int]], list[int]]:
    """Mends marks and control characters; UnicodeTranscode alone can be strict about the latter."""
    controls, replacement = node.attrs["replace_control_characters"], node.attrs["replacement_char"]
    lenient = controls and node.op != "UnicodeTranscode" and node.attrs["errors"] == b"strict"

    def is_wrong(point: int) -> bool:
        return _is_mark(point) or (controls and not lenient and point < 0x20)

    def mend(points: list[int]) -> list[int]:
        mended = _mended(points, is_wrong, node, "Invalid formatting on input string")
        return [replacement if point < 0x20 else point for point in mended] if lenient else mended

    return mend


def _decoder(node: Construction) -> Callable[[bytes], list[int]]:
    """Code points of a string."""
    codec, mend = _codec(node.attrs["input_encoding"]), _mender(node)
    return lambda value: _kept(mend(_marked(codec, value)))


def _text(points: Iterable[int]) -> str:
    return "".join(map(chr, points))


def _output_codec(node: Construction) -> str:
    return str(node.attrs["output_encoding"].decode())


@kernel("UnicodeDecode")
def unicode_decode(node: Construction) -> Kernel:
    """Row splits and code points of all strings, in row-major order."""
    decode, splits_type = _decoder(node), numpy_dtype(node.output_types[0])

    def run(x: Array) -> tuple[Array, Array]:
        rows = [decode(value) for value in np.asarray(x).reshape(-1).tolist()]
        splits = np.array([*accumulate(map(len, rows), initial=0)], np.int64).astype(splits_type)
        return splits, np.array([point for row in rows for point in row], np.int32)

    return run


def _widths(codec: str, points: list[int], size: int) -> list[int]:
    """How many of the `size` bytes of the input each code point, or mark, stands for."""
    if len(points) == size:
        return [1] * size
    return [
        point - _ILL_FORMED if _is_mark(point) else len(chr(point).encode(_WITHOUT_MARK.get(codec, codec)))
        for point in points
    ]


@kernel("UnicodeDecodeWithOffsets")
def unicode_decode_with_offsets(node: Construction) -> Kernel:
    """As UnicodeDecode, and the byte at which each character of its string begins."""
    codec, mend = _codec(node.attrs["input_encoding"]), _mender(node)
    splits_type = numpy_dtype(node.output_types[0])

    def decode(value: bytes) -> list[tuple[int, int]]:
        points = _marked(codec, value)
        widths = _widths(codec, points, len(value))
        before = len(value) - sum(widths)  # a byte order mark, which is no character
        starts = accumulate(widths, initial=before)
        return [pair for pair in zip(mend(points), starts, strict=False) if pair[0] != _LEFT_OUT]

    def run(x: Array) -> tuple[Array, Array, Array]:
        rows = [decode(value) for value in np.asarray(x).reshape(-1).tolist()]
        splits = np.cumsum([0, *map(len, rows)]).astype(splits_type)
        pairs = [pair for row in rows for pair in row]
        return splits, np.array([p for p, _ in pairs], np.int32), np.array([start for _, start in pairs], np.int64)

    return run


@kernel("UnicodeTranscode")
def unicode_transcode(node: Construction) -> Kernel:
    """The same text in another encoding."""
    decode, codec = _decoder(node), _output_codec(node)
    return lambda x: each(lambda value: _text(decode(value)).encode(codec), x)


def _check_splits(splits: list[int], count: int) -> None:
    """Refuses row splits that do not divide `count` values, in TensorFlow's words."""
    if not splits:
        raise InvalidArgumentError(
            f"Input_splits should contain elements, but given input_values has {len(splits)} elements"
        )
    require(splits[0] == 0, "First value in input_splits must be zero.")
    rising = all(a <= b for a, b in pairwise(splits))
    require(splits[-1] == count, "Last value in input_splits must be equal to length of input_tensor.")
    require(rising, "Values in input_splits must be equal or in ascending order.")


@kernel("UnicodeEncode")
def unicode_encode(node: Construction) -> Kernel:
    """One string per row of code points."""
    codec = _output_codec(node)
    message = "Code point is out of range for Unicode, or is a surrogate."

    def is_wrong(point: int) -> bool:
        return not 0 <= point <= 0x10FFFF or 0xD800 <= point <= 0xDFFF

    def run(values: Array, splits: Array) -> Array:
        for name, value in (("input_values", values), ("input_splits", splits)):
            if np.ndim(value) != 1:
                raise InvalidArgumentError(f"{name} must be a vector, got shape {shape_text(np.shape(value))}")
        points, ends = np.asarray(values).tolist(), np.asarray(splits).tolist()
        _check_splits(ends, len(points))
        rows = (points[start:end] for start, end in pairwise(ends))
        texts = [_text(_kept(_mended(row, is_wrong, node, message))).encode(codec) for row in rows]
        return strings(texts, (len(texts),))

    return run


@cache
def _scripts() -> tuple[Array, Array]:
    """First code points of the runs of one script, and the scripts: Unicode's property Script in ICU's numbering."""
    table = json.loads(gzip.decompress(_SCRIPTS_FILE.read_bytes()))
    return np.cumsum(table["steps"]), np.array(table["scripts"], np.int32)


def script_runs() -> Iterable[tuple[int, int, int]]:
    """First and last code point of each run of one script, and the script in ICU's numbering."""
    starts, scripts = _scripts()
    return zip(starts.tolist(), [*(starts[1:] - 1).tolist(), 0x10FFFF], scripts.tolist(), strict=True)


def unicode_script(x: Any) -> Any:  # arrays or scalars of int32
    """The script of each code point, -1 for numbers that are not code points."""
    starts, scripts = _scripts()
    points = np.asarray(x)
    script = scripts[np.searchsorted(starts, points, "right") - 1]
    return np.where((points < 0) | (points > 0x10FFFF), np.int32(_UNKNOWN_SCRIPT), script)


simple("UnicodeScript", unicode_script)
