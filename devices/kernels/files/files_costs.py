"""Costs of readers and writers: what only makes one, names a file or asks a reader takes a time of the host.

Reads and writes themselves are guessed: how fast a disk is no model of a device says.
"""

from __future__ import annotations

from ..host_times import MAKE_NS, PASS_NS
from ..op_cost import takes_host_time

takes_host_time(
    MAKE_NS,
    *("FixedLengthRecordReader", "FixedLengthRecordReaderV2", "IdentityReader", "IdentityReaderV2", "ImmutableConst"),
    *("SummaryWriter", "TFRecordReader", "TFRecordReaderV2", "TextLineReader", "TextLineReaderV2"),
    *("WholeFileReader", "WholeFileReaderV2"),
)
takes_host_time(
    PASS_NS,
    *("ReaderNumRecordsProduced", "ReaderNumRecordsProducedV2", "ReaderNumWorkUnitsCompleted"),
    *("ReaderNumWorkUnitsCompletedV2", "ReaderReset", "ReaderResetV2", "ShardedFilename", "ShardedFilespec"),
)
