"""The ops that parse serialised Examples and SequenceExamples.

`graph/ops/record.py` explains the columns of a row.
"""

from __future__ import annotations

from ..record import FactsByOp

OPS: FactsByOp = {
    "DecodeJSONExample": {},
    "ParseExample": {},
    "ParseExampleV2": {},
    "ParseSequenceExample": {},
    "ParseSequenceExampleV2": {},
    "ParseSingleExample": {},
    "ParseSingleSequenceExample": {},
}
