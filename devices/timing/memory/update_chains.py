"""From the updates of a step back to where the gradients come from: the chain of each update.

A chain is what a gradient goes through on its way to an update: casts, sums over micro-batches, exchanges, clipping,
the arithmetic of an optimizer. It begins at a *root*, the op that makes the gradient of something larger: a product, a
sum over rows. For w of shape (8, 4) and d_y, x with 32 rows:

    d_w = MatMul(x, d_y)    root
    s = AllReduce(d_w)      chain
    c = Mul(s, factor)      chain: d_w and s are of one size, the factor is a scalar
    w -= c                  the update

`PassedOn` says which ops pass a gradient on. A chain goes on through a variable that another update of the step
changes, as one of a shard that ZeRO keeps beside a weight.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set as AbstractSet
from typing import NamedTuple

from .passed_on import PassedOn

NEVER_USED = -1


class WeightUpdate(NamedTuple):
    """A node that changes a variable: by which outputs, and the other variables that it changes, as an optimizer."""

    node: int
    variable: int
    values: tuple[int, ...]
    slots: tuple[int, ...]


class Chains:
    """The outputs in the chains of some updates; variables are nodes, `variable_read` has the outputs with values."""

    def __init__(
        self,
        passed_on: PassedOn,
        updates: Iterable[WeightUpdate],
        variable_read: Mapping[int, AbstractSet[int]],
        signals: AbstractSet[int] = frozenset(),
    ) -> None:
        """`signals` are outputs where a chain has to end, since they lead to gradients of other variables."""
        self.passed_on, self.variable_read = passed_on, variable_read
        self.sources: dict[int, list[int]] = {}
        """by output of a chain those before it"""
        self.roots: set[int] = set()
        """the outputs with which chains begin"""
        self.values: dict[int, list[int]] = defaultdict(list)
        """by variable the outputs by which it is changed"""
        for update in updates:
            self.values[update.variable] += update.values
        self._buckets: dict[int, tuple[int, ...]] = {}
        self._walk(signals)
        self._consumers: dict[int, list[int]] = defaultdict(list)
        self._changed: dict[int, list[int]] = defaultdict(list)
        self._reads: dict[int, list[int]] = defaultdict(list)
        for output, before in self.sources.items():
            for source in before:
                self._consumers[source].append(output)
            for variable in self.variable_read.get(output, ()):
                self._reads[variable].append(output)
        for variable, values in self.values.items():
            for value in values:
                self._changed[value].append(variable)

    def _walk(self, signals: AbstractSet[int]) -> None:
        waiting = [value for values in self.values.values() for value in values]
        while waiting:
            output = waiting.pop()
            if output in self.sources:
                continue
            self.sources[output] = []
            if output in self.variable_read or not self._is_computed(output):
                continue
            passed = self.passed_on(output)
            before = [source for source in passed.sources if source not in signals]
            self._buckets[output] = passed.buckets
            if not before:
                self.roots.add(output)
            self.sources[output] = before
            waiting += before

    def _is_computed(self, output: int) -> bool:
        flow = self.passed_on.flow
        return bool(flow.sources(flow.node(output)))

    def down(self, values: dict[int, int]) -> tuple[dict[int, int], dict[int, int]]:
        """By output and by variable the largest value of what is before it in its chains, and its own."""
        found, of_variables = dict(values), dict[int, int]()
        waiting = list(found)
        while waiting:
            output = waiting.pop()
            value, following = found[output], list(self._consumers.get(output, ()))
            for variable in self._changed.get(output, ()):
                if of_variables.get(variable, NEVER_USED) < value:
                    of_variables[variable] = value
                    following += self._reads.get(variable, ())
            for after in following:
                if found.get(after, NEVER_USED) < value:
                    found[after] = value
                    waiting.append(after)
        return found, of_variables

    def behind(self, outputs: Iterable[int]) -> set[int]:
        """These outputs, and what follows them in chains up to the next variable, with the buckets that they are in."""
        found = set(outputs)
        waiting = list(found)
        while waiting:
            new = [after for after in self._consumers.get(waiting.pop(), ()) if after not in found]
            found.update(new)
            waiting += new
        return found.union(*(self._buckets.get(output, ()) for output in found))

    def up(self, values: Mapping[int, int]) -> dict[int, int]:
        """By output the largest of the values of the variables that it changes, or that it leads to in a chain."""
        found, of_variables = dict[int, int](), dict[int, int]()
        waiting = list(values.items())
        while waiting:
            variable, value = waiting.pop()
            if of_variables.get(variable, NEVER_USED) >= value:
                continue
            of_variables[variable] = value
            outputs = list(self.values.get(variable, ()))
            while outputs:
                output = outputs.pop()
                if found.get(output, NEVER_USED) < value:
                    found[output] = value
                    outputs += self.sources[output]
                    waiting += [(read, value) for read in self.variable_read.get(output, ())]
        return found
