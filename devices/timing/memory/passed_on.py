"""Which of its inputs an output consists of: of what it has the elements, one by one, rearranged, or added up.

That follows from records and sizes: views, exchanges, elementwise ops and sums of tensors of one size, and what
rearranges the elements of tensors or cuts one. Tensors that travel in one bucket are told apart behind it: of what is
cut into as many parts as were joined, part k comes from input k.

    cast of d_w             d_w
    d_w * factor            d_w, as the factor is a scalar
    d_w + sum so far        both
    AllReduce(bucket)       the bucket
    part 1 of the bucket    d_b, of which bucket = Concat(d_w, d_b) was made
    MatMul(x, d_y)          nothing: it is computed
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ....graph.dtypes import DataType
from ....graph.ops.properties import NodeProperties
from ....graph.ops.record import Exchange
from .step_flow import StepFlow

_INDICES = frozenset({DataType.INT32, DataType.INT64})


class PassedTensors(NamedTuple):
    """The outputs that an output consists of, and the buckets in which they came."""

    sources: Sequence[int] = ()
    buckets: tuple[int, ...] = ()


NOTHING = PassedTensors()


class PassedOn:
    """The answers for the outputs of one step, each found once."""

    def __init__(self, flow: StepFlow) -> None:
        self.flow = flow
        self._known: dict[int, PassedTensors] = {}

    def __call__(self, output: int) -> PassedTensors:
        """What an output consists of; scalars count only where it is one, numbers that are no floats never do."""
        if output not in self._known:
            self._known[output] = self._of(output)
        return self._known[output]

    def _of(self, output: int) -> PassedTensors:
        flow = self.flow
        if not self.flow.is_float(output):
            return NOTHING
        node = flow.node(output)
        kind, elements = flow.kinds[node], flow.elements(output)
        large = [s for s in flow.sources(node) if flow.is_float(s) and (flow.elements(s) > 1 or elements == 1)]
        record = kind.op_def.record
        if is_exchange(kind) or record.is_transfer or record.is_view:
            return PassedTensors(large)
        if record.is_product or record.merges_by or record.sums_segments or not large:
            return NOTHING
        sizes = [flow.elements(source) for source in large]
        parts = [each for each in flow.outputs(node) if self.flow.is_float(each)]
        is_rearranged = sum(sizes) == sum(map(flow.elements, parts))
        if is_rearranged and len(large) == 1 and len(parts) > 1:
            self._known.update(zip(parts, self._out_of_bucket(large[0], parts), strict=True))
            return self._known[output]
        is_cut = len(large) == 1 and any(dtype in _INDICES for dtype in kind.input_types)
        return PassedTensors(large) if is_rearranged or is_cut or all(size == elements for size in sizes) else NOTHING

    def _out_of_bucket(self, bucket: int, parts: Sequence[int]) -> list[PassedTensors]:
        """What each part is of what was joined in a bucket; the bucket, if it was not joined of such parts."""
        flow, passed, sizes = self.flow, [bucket], list(map(self.flow.elements, parts))
        while True:
            node = flow.node(passed[-1])
            joined = [source for source in flow.inputs(node) if self.flow.is_float(source)]
            if len(joined) == len(parts):
                whole = list(map(flow.elements, joined))
                if all(size * whole[0] == of * sizes[0] for size, of in zip(sizes, whole, strict=True)):
                    return [PassedTensors([source], tuple(passed)) for source in joined]
            if len(joined) != 1 or flow.kinds[node].op_def.record.is_product:
                return [PassedTensors([bucket])] * len(parts)
            passed.append(joined[0])


def is_exchange(kind: NodeProperties) -> bool:
    """Whether a node exchanges tensors with other devices."""
    return kind.op_def.record.exchange not in (None, Exchange.NOTHING)
