"""Files of sweeps that tests read."""

from __future__ import annotations

FILE = """
command = "plan"
where = ["split.tp < global_batch"]
results = ["plans.0.step_ms", "plans.0.tp"]

[flags]
family = "llama"
layers = 2
split = 'zero=1'
seq = 64
dropout = true

[axes]
gpus = ["A", "B"]
split.tp = [1, 2, 4]
global_batch = { from = 4, to = 8, factor = 2 }
"""
