"""The tables of measured training runs by name: a file -> its lines, and the cells of a line -> its runs.

    TABLES["llm_training_b200_megatron"].read(path, may_be_empty=False)     keys and measured values of all lines
    TABLES["megatron_korthikanti2022_table5"].rows(cells, folders)          the two runs of one line

A further table is a function from the cells of a line to its runs, and an entry here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from attrs import frozen

from ....devices.calibration.validation.rows import MeasuredRows, read_csv
from . import megatron_tables as megatron, simumax_table as simumax, vtrain_tables as vtrain
from .training_row import Quantity, TrainingRow

CellRows = Callable[[Mapping[str, str], Sequence[Path]], list[TrainingRow]]


@frozen
class TrainingTable:
    """A table: its key columns with their kinds, what its other columns measure, and the runs of a line.

    `rows` gets the cells of a line by column, and folders in which to look for a file that the line refers to.
    """

    name: str
    keys: Mapping[str, str]
    columns: Mapping[str, Quantity]
    rows: CellRows

    def read(self, path: Path, may_be_empty: bool) -> MeasuredRows:
        """The lines of a file; InvalidArgumentError by file and line."""
        return read_csv(path, self.keys, tuple(self.columns), may_be_empty=may_be_empty)


_ALL = (
    TrainingTable("llm_training_multi_node_a100", vtrain.MANY_NODES_KEYS, vtrain.COLUMNS, vtrain.vtrain_rows),
    TrainingTable("llm_training_single_node_a100", vtrain.ONE_NODE_KEYS, vtrain.COLUMNS, vtrain.vtrain_rows),
    TrainingTable("llm_training_b200_megatron", simumax.KEYS, simumax.COLUMNS, simumax.simumax_rows),
    TrainingTable(
        "megatron_korthikanti2022_table5", megatron.STEP_KEYS, megatron.STEP_COLUMNS, megatron.korthikanti_rows
    ),
    TrainingTable(
        "megatron_korthikanti2022_memory",
        megatron.MEMORY_KEYS,
        megatron.MEMORY_COLUMNS,
        megatron.korthikanti_memory_rows,
    ),
    TrainingTable(
        "megatron_narayanan2021_table1", megatron.SCALING_KEYS, megatron.SCALING_COLUMNS, megatron.narayanan_rows
    ),
)
TABLES = {table.name: table for table in _ALL}
