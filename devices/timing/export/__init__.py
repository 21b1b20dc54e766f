"""Writers of timelines: Chrome and Perfetto traces, RunMetadata, tables, event files, and what packages register."""

from .chrome import chrome_trace as chrome_trace, write_chrome_trace as write_chrome_trace
from .csv import csv_rows as csv_rows, write_csv as write_csv
from .perfetto import perfetto_trace as perfetto_trace, write_perfetto as write_perfetto
from .registry import (
    Exporter as Exporter,
    exporter_for as exporter_for,
    register_exporter as register_exporter,
)
from .run_metadata import (
    run_metadata as run_metadata,
    step_stats as step_stats,
    write_run_metadata as write_run_metadata,
)
from .tensorboard import write_tensorboard as write_tensorboard
