"""Cases: the distinct combinations of a kind of node, what is known of its inputs, and what follows for its outputs.

Nodes of one case have equal shapes, and cost the same on equal devices. With an assumed size no size stays unknown: an
unknown size becomes that number, and an unknown shape that of the first input, or a scalar if there is none. A case
then has the shapes that were assumed.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..dtypes import Shape, Shapes
from .outcomes import InferenceOutcome
from .tensor_facts import TensorFacts

_CaseKey = tuple[int, tuple[int, ...], Shapes, tuple[int, ...]]


class Cases:
    """Cases by number: the kind, the facts of the inputs, and of the outputs the facts and the shapes.

    Case 0 is that of nodes that are not visited. `assumed` has by case the shapes before anything was assumed,
    `as_stated` those before sizes were taken from what the graph says of them;
    `contradictions` are the cases that no rule of their op fits because of earlier assumptions.
    """

    def __init__(self, facts: TensorFacts, assumed_size: int | None) -> None:
        self.kind = [-1]
        self.inputs: list[tuple[int, ...]] = [()]
        self.outputs: list[tuple[int, ...]] = [()]
        self.shapes: list[Shapes] = [()]
        self.assumed: dict[int, Shapes] = {}
        self.as_stated: dict[int, Shapes] = {}
        self.contradictions: set[int] = set()
        self._facts = facts
        self.assumed_size = assumed_size
        self._numbers: dict[_CaseKey, int] = {}

    def number(self, kind: int, inputs: Sequence[int], outcome: InferenceOutcome, num_outputs: int) -> int:
        """The number of a case; a node of the kind has `num_outputs` outputs, also if its op's rule gives others."""
        known, shapes = outcome.shapes, self._closed(inputs, outcome.shapes)
        if len(shapes) == num_outputs and not outcome.values and not outcome.behind:
            outputs = tuple(map(self._facts.number, shapes))
        else:
            nothing = [None] * num_outputs
            columns = [*shapes, *nothing], [*outcome.values, *nothing], [*outcome.behind, *nothing]
            outputs = tuple([self._facts.number(*facts) for facts in zip(*columns, strict=False)][:num_outputs])
        key = kind, tuple(inputs), known, outputs
        number = self._numbers.setdefault(key, len(self.kind))
        if number == len(self.kind):
            self.kind.append(kind)
            self.inputs.append(tuple(inputs))
            self.outputs.append(outputs)
            self.shapes.append(shapes)
            if shapes is not known:
                self.assumed[number] = known
            if outcome.before is not None:
                self.as_stated[number] = outcome.before
            if outcome.contradicts:
                self.contradictions.add(number)
        return number

    def plain(self, kind: int, inputs: tuple[int, ...], shapes: Shapes) -> int:
        """`number` where nothing is known but shapes, all sizes of which are."""
        outputs = tuple(map(self._facts.number, shapes))
        number = self._numbers.setdefault((kind, inputs, shapes, outputs), len(self.kind))
        if number == len(self.kind):
            self.kind.append(kind)
            self.inputs.append(inputs)
            self.outputs.append(outputs)
            self.shapes.append(shapes)
        return number

    def _closed(self, inputs: Sequence[int], shapes: Shapes) -> Shapes:
        """The shapes with all unknown sizes assumed; the same object where nothing is assumed."""
        if self.assumed_size is None or all(shape is not None and None not in shape for shape in shapes):
            return shapes
        first = self._facts.shapes[inputs[0]] if inputs else ()
        return tuple(self._closed_shape(shape, first or ()) for shape in shapes)

    def _closed_shape(self, shape: Shape, first: tuple[int | None, ...]) -> Shape:
        if shape is None:
            return first
        return tuple(self.assumed_size if size is None else size for size in shape)
