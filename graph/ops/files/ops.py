"""The ops on files: checkpoints, readers and summaries.

`graph/ops/record.py` explains the columns of a row.
"""

from __future__ import annotations

from ..record import Rows, State

OPS: Rows = {
    "AudioSummary": {"is_flat": True},
    "AudioSummaryV2": {"is_flat": True},
    "CloseSummaryWriter": {"state": State.FILES},
    "CreateSummaryFileWriter": {"state": State.FILES},
    "FixedLengthRecordReader": {"state": State.FILES, "is_flat": True, "ignores_written_shapes": True},
    "FlushSummaryWriter": {"state": State.FILES},
    "GenerateVocabRemapping": {"is_flat": True},
    "HistogramSummary": {"is_flat": True},
    "IdentityReader": {"state": State.FILES, "is_flat": True, "ignores_written_shapes": True},
    "ImageSummary": {"is_flat": True},
    "ImportEvent": {"state": State.FILES},
    "LoadAndRemapMatrix": {"state": State.FILES, "is_flat": True},
    "MatchingFiles": {"waits_for_files": True},
    "MergeSummary": {"is_flat": True},
    "MergeV2Checkpoints": {"state": State.FILES, "waits_for_files": True},
    "ReadFile": {"waits_for_files": True},
    "ReaderNumRecordsProduced": {"state": State.FILES, "is_flat": True},
    "ReaderNumWorkUnitsCompleted": {"state": State.FILES, "is_flat": True},
    "ReaderRead": {"state": State.FILES, "is_flat": True},
    "ReaderReadUpTo": {"state": State.FILES, "is_flat": True},
    "ReaderReset": {"state": State.FILES, "is_flat": True},
    "ReaderRestoreState": {"state": State.FILES, "is_flat": True},
    "ReaderSerializeState": {"state": State.FILES, "is_flat": True},
    "RestoreV2": {"state": State.FILES, "waits_for_files": True, "asks_values": True},
    "SaveV2": {"state": State.FILES, "waits_for_files": True},
    "ScalarSummary": {"is_flat": True},
    "ShardedFilename": {},
    "ShardedFilespec": {},
    "SummaryWriter": {"state": State.FILES},
    "TFRecordReader": {"state": State.FILES, "is_flat": True, "ignores_written_shapes": True},
    "TensorSummary": {"is_flat": True},
    "TensorSummaryV2": {"is_flat": True},
    "TextLineReader": {"state": State.FILES, "is_flat": True, "ignores_written_shapes": True},
    "WholeFileReader": {"state": State.FILES, "is_flat": True, "ignores_written_shapes": True},
    "WriteFile": {"waits_for_files": True},
    "WriteGraphSummary": {"state": State.FILES},
    "WriteHistogramSummary": {"state": State.FILES},
    "WriteRawProtoSummary": {"state": State.FILES},
    "WriteScalarSummary": {"state": State.FILES},
    "WriteSummary": {"state": State.FILES},
}
