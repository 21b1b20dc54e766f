"""A sweep is one table: by four worker processes, by four workers of dask, and in one process; a worker may die."""

from __future__ import annotations

import tomllib

import pytest

from partita.scenarios.sweeps.sweep_file import parse_sweep
from tests.laws.sweeps.capacity import CHECKOUT, SHIPPED, tables

pytestmark = pytest.mark.slow  # eight processes load the planner


def test_tables_are_equal_although_workers_die() -> None:
    """Of the shipped example, with fewer points; `python -m tests.laws.sweeps.capacity` sweeps all 200."""
    pytest.importorskip("distributed", reason="distributed is not installed: pip install '.[dask]'")
    few = {"gpus": ["H100-SXM:8", "H100-SXM:64"], "global-batch": [128, 512], "seq": [2048, 4096, 32768]}
    table = {**tomllib.loads(SHIPPED.read_text()), "axes": few}
    table["flags"]["config"] = str(CHECKOUT / table["flags"]["config"])
    found = tables(parse_sweep(table, "capacity", str(CHECKOUT)), 4)
    assert found["processes"] == found["dask"] == found["serial"]
    assert (len(found["serial"]), found["serial"].failed) == (12, ())
