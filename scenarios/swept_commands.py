"""The commands that `partita sweep` runs for each point, as a program of their own: all that have numbers in JSON."""

from __future__ import annotations

from .help import Group
from .planning import plan
from .rewriting import rewrite
from .simulating import simulate, workload

SWEPT = Group("partita", commands={"plan": plan, "rewrite": rewrite, "simulate": simulate, "workload": workload})
