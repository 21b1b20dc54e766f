"""Timelines for other people's viewers: Chrome traces, RunMetadata, tables."""

from .chrome import chrome_trace, write_chrome_trace
from .csv import csv_rows, write_csv
from .run_metadata import run_metadata, step_stats

__all__ = ["chrome_trace", "csv_rows", "run_metadata", "step_stats", "write_chrome_trace", "write_csv"]
