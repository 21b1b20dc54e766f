"""The ops on image files.

`graph/ops/record.py` explains the columns of a row.
"""

from __future__ import annotations

from ..record import FactsByOp

OPS: FactsByOp = {
    "DecodeAndCropJpeg": {"takes_long": True},
    "DecodeBmp": {},
    "DecodeGif": {"takes_long": True},
    "DecodeImage": {"takes_long": True},
    "DecodeJpeg": {"takes_long": True},
    "DecodePng": {"takes_long": True},
    "EncodeJpeg": {"takes_long": True},
    "EncodeJpegVariableQuality": {"takes_long": True},
    "EncodePng": {"takes_long": True},
    "ExtractJpegShape": {},
}
