"""The tensors of a step in which bodies run any number of times, made of the tensors of the bodies.

Every run of a body has a block of rows, one per node, and so outputs of its own. What goes in and out of a run keeps
its buffer. For y = f(x), where f has the nodes arg, n = Neg(arg), result:

    run     row   node      output              its buffer
    step    0     x         x                   its own
            1     y = f(x)  y                   that of n, as the result of the call
    of f    2     arg       arg                 that of x
            3     n         n                   its own
            4     result

An iteration of a loop is a run too: what the next iteration does not take over is free when its last reader has ended.
Constants of a body are there once, however often it runs, and so are variables of one name in different bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ....graph.arrays import Flags, Numbers
from .tensors import Assignments, Pairs, Tensors


class Run(NamedTuple):
    """One run of a body: its tensors, the row of its first node, and the row of the node that called it (-1: none)."""

    tensors: Tensors
    base: int
    caller: int = -1


class PassedOn(NamedTuple):
    """Output `port` of row `row` has the buffer of output `from_port` of row `from_row`."""

    row: int
    port: int
    from_row: int
    from_port: int


def tensors_of_runs(runs: Sequence[Run], passed_on: Iterable[PassedOn] = ()) -> Tensors:
    """The tensors of all runs, whose blocks of rows follow one another from 0; their nodes are rows.

    A body reads for the node that called it, and what it returns is no fetch.
    """
    tensors = _Joined(runs).tensors()
    for row, port, from_row, from_port in passed_on:
        tensors.shares[tensors.first[row] + port] = tensors.first[from_row] + from_port
    return tensors


class _Joined:
    """Columns of all runs, one behind the other."""

    def __init__(self, runs: Sequence[Run]) -> None:
        counts = np.array([len(run.tensors.node) for run in runs], np.int64)
        self.runs = runs
        self.offsets: list[int] = (np.cumsum(counts) - counts).tolist()

    def facts(self, of: Callable[[Tensors], Flags]) -> Flags:
        """A column of facts."""
        return np.concatenate([of(run.tensors) for run in self.runs])

    def numbers(self, of: Callable[[Tensors], Numbers]) -> Numbers:
        """A column of sizes, ports or memories."""
        return np.concatenate([of(run.tensors) for run in self.runs])

    def rows(self, of: Callable[[Tensors], Numbers]) -> Numbers:
        """A column of nodes."""
        return np.concatenate([of(run.tensors) + run.base for run in self.runs])

    def outputs(self, of: Callable[[Tensors], Numbers]) -> Numbers:
        """A column of outputs."""
        return np.concatenate([of(run.tensors) + begin for run, begin in zip(self.runs, self.offsets, strict=True)])

    def pairs(self, of: Callable[[Tensors], Pairs]) -> Pairs:
        """A relation between outputs."""
        return Pairs(self.outputs(lambda t: of(t).this), self.outputs(lambda t: of(t).that))

    def tensors(self) -> Tensors:
        """All columns."""
        readers = self.rows(lambda t: t.reads.that)
        counts = ~np.isin(readers, [run.caller for run in self.runs])
        is_fetch = np.concatenate([run.tensors.returns & (run.caller < 0) for run in self.runs])
        shares, variables = self._shares()
        return Tensors(
            node=self.rows(lambda t: t.node),
            port=self.numbers(lambda t: t.port),
            size_bytes=self.numbers(lambda t: t.size_bytes),
            memory=self.numbers(lambda t: t.memory),
            shares=shares,
            is_variable=self.facts(lambda t: t.is_variable),
            is_fixed=self.facts(lambda t: t.is_fixed),
            is_lasting=self.facts(lambda t: t.is_lasting),
            reads=Pairs(self.outputs(lambda t: t.reads.this)[counts], readers[counts]),
            keeps=self.facts(lambda t: t.keeps)[counts],
            returns=is_fetch[counts],
            may_replace=self.pairs(lambda t: t.may_replace),
            merges=self.pairs(lambda t: t.merges),
            variable_reads=self.pairs(lambda t: t.variable_reads),
            assignments=Assignments(
                self.rows(lambda t: t.assignments.node),
                self.outputs(lambda t: t.assignments.handle),
                self.outputs(lambda t: t.assignments.value),
            ),
            uses_content=self.facts(lambda t: t.uses_content),
            first=self.outputs(lambda t: t.first),
            variables=variables,
        )

    def _shares(self) -> tuple[Numbers, dict[Hashable, int]]:
        """What is there for the whole step is shared by all runs of a body, variables by all bodies."""
        shares = self.outputs(lambda t: t.shares)
        bodies: dict[int, int] = {}
        variables: dict[Hashable, int] = {}
        for run, begin in zip(self.runs, self.offsets, strict=True):
            first = bodies.setdefault(id(run.tensors), begin)
            if first != begin:
                lasting = np.flatnonzero(run.tensors.is_lasting)
                shares[begin + lasting] = shares[first + lasting]
            for key, output in run.tensors.variables.items():
                shares[begin + output] = variables.setdefault(key, begin + output)
        return shares, variables
