"""Writers of timelines: Chrome traces, RunMetadata, tables, and formats that other packages register."""

from .chrome import chrome_trace, write_chrome_trace
from .csv import csv_rows, write_csv
from .registry import Exporter, exporter_for, register_exporter
from .run_metadata import run_metadata, step_stats, write_run_metadata

__all__ = [
    "Exporter",
    "chrome_trace",
    "csv_rows",
    "exporter_for",
    "register_exporter",
    "run_metadata",
    "step_stats",
    "write_chrome_trace",
    "write_csv",
    "write_run_metadata",
]
