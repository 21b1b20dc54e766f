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
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ....errors import InvalidArgumentError
from ....graph.dtypes import Array, numpy_dtype
from ..checks import require
from ..registry import Construction, Kernel, kernel, simple
from .each_string import each, strings

_ILL_FORMED = 0xDFFF  # a surrogate: no decoder gives one for well-formed input
_UNKNOWN_SCRIPT = -1
_SCRIPTS_FILE = Path(__file__).with_name("unicode_scripts.json.gz")

codecs.register_error("partita.mark", lambda error: (chr(_ILL_FORMED), getattr(error, "end", 0)))


def _codec(name: bytes) -> str:
    try:
        return codecs.lookup(name.decode()).name
    except (LookupError, UnicodeDecodeError):
        text = name.decode(errors="replace")
        raise InvalidArgumentError(f"Could not create converter for input encoding: {text}") from None


def _mended(points: Iterable[int], is_wrong: Callable[[int], bool], node: Construction, message: str) -> list[int]:
    """`points` with wrong ones replaced, left out or refused, as the attr `errors` says."""
    errors, replacement = node.attrs["errors"], node.attrs["replacement_char"]
    code_points = list(points)
    if not any(map(is_wrong, code_points)):
        return code_points
    if errors == b"strict":
        raise InvalidArgumentError(message)
    if errors == b"ignore":
        return [point for point in code_points if not is_wrong(point)]
    return [replacement if is_wrong(point) else point for point in code_points]


def _decoder(node: Construction) -> Callable[[bytes], list[int]]:
    """Code points of a string; UnicodeDecode, unlike UnicodeTranscode, is never strict about control characters."""
    codec, controls = _codec(node.attrs["input_encoding"]), node.attrs["replace_control_characters"]
    lenient = controls and node.op == "UnicodeDecode" and node.attrs["errors"] == b"strict"
    replacement = node.attrs["replacement_char"]

    def is_wrong(point: int) -> bool:
        return point == _ILL_FORMED or (controls and not lenient and point < 0x20)

    def decode(value: bytes) -> list[int]:
        points = map(ord, codecs.decode(value, codec, "partita.mark"))
        mended = _mended(points, is_wrong, node, "Invalid formatting on input string")
        return [replacement if point < 0x20 else point for point in mended] if lenient else mended

    return decode


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
        splits = np.cumsum([0, *map(len, rows)]).astype(splits_type)
        return splits, np.array([point for row in rows for point in row], np.int32)

    return run


@kernel("UnicodeTranscode")
def unicode_transcode(node: Construction) -> Kernel:
    """The same text in another encoding."""
    decode, codec = _decoder(node), _output_codec(node)
    return lambda x: each(lambda value: _text(decode(value)).encode(codec), x)


def _check_splits(splits: list[int], count: int) -> None:
    """Refuses row splits that do not divide `count` values, in TensorFlow's words."""
    require(bool(splits), f"Input_splits should contain elements, but given input_values has {len(splits)} elements")
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
        points, ends = np.asarray(values).tolist(), np.asarray(splits).tolist()
        _check_splits(ends, len(points))
        rows = (points[start:end] for start, end in pairwise(ends))
        texts = [_text(_mended(row, is_wrong, node, message)).encode(codec) for row in rows]
        return strings(texts, (len(texts),))

    return run


@cache
def _scripts() -> tuple[Array, Array]:
    """First code points of the runs of one script, and the scripts: Unicode's property Script in ICU's numbering."""
    table = json.loads(gzip.decompress(_SCRIPTS_FILE.read_bytes()))
    return np.cumsum(table["steps"]), np.array(table["scripts"], np.int32)


def unicode_script(x: Any) -> Any:  # arrays or scalars of int32
    """The script of each code point, -1 for numbers that are not code points."""
    starts, scripts = _scripts()
    points = np.asarray(x)
    script = scripts[np.searchsorted(starts, points, "right") - 1]
    return np.where((points < 0) | (points > 0x10FFFF), np.int32(_UNKNOWN_SCRIPT), script)


simple("UnicodeScript", unicode_script)
