"""The ops on sound: wave files, spectra, features of speech.

`graph/ops/record.py` explains the columns of a row.
"""

from __future__ import annotations

from ..record import FactsByOp

OPS: FactsByOp = {
    "AudioSpectrogram": {"takes_long": True},
    "DecodeWav": {},
    "EncodeWav": {},
    "Mfcc": {},
}
