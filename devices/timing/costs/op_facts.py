"""What decides how an op is priced on a device, whatever its shapes are: found once for an op and a device.

MatMul on V100-PCIe     may be a product in float32 of which there are fits
AddV2 on V100-PCIe      may stream like a measured kernel
AddV2 on H100-SXM       numbers: 80 % of the bandwidth and 3 us, assumed
Cholesky                nothing: the roofline speaks
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, floor
from typing import NamedTuple, Protocol

from ....errors import NotFoundError
from ...catalog import device_spec
from ...kernels import op_cost
from ...kernels.counters import Counters
from ...kernels.op_cost import CostContext
from ...spec import DeviceSpec
from ..fits.calibration import Calibration, DeviceFits
from ..fits.memory_bound import MemoryBoundModel, MemoryNumbers
from ..fits.products import ProductModel
from .source import OpCost, Provenance


class OpFits(Protocol):
    """The models of one device that this source reads; `DeviceFits` has them."""

    @property
    def products(self) -> ProductModel | None:
        """Of products and convolutions."""
        ...

    @property
    def memory_bound(self) -> MemoryBoundModel | None:
        """Of all ops that are neither."""
        ...


class FitsByDevice(Protocol):
    """Finds the models of a device by the name of its spec; `Calibration` does."""

    def device(self, name: str) -> OpFits | None:
        """The models, or None."""
        ...

    def having(self, part: str) -> Iterable[DeviceFits]:
        """The devices that have a model of that part."""
        ...


class OpFacts(NamedTuple):
    """What decides how an op is priced on a device, whatever its shapes are.

    Without `numbers` the roofline speaks for what is no product; with them they do, with this `provenance`.
    """

    may_be_product: bool
    may_be_layer: bool
    may_be_convolution: bool
    may_be_run: bool
    may_be_fp32: bool
    may_stream: bool
    is_stated: bool
    is_elementwise: bool
    numbers: MemoryNumbers | None
    provenance: Provenance
    counters: Counters

    @property
    def may_be_kernel(self) -> bool:
        """Whether it depends on the shapes if a measured product or kernel speaks for the op."""
        may_be = self.may_be_product, self.may_be_convolution, self.may_be_run, self.may_be_fp32, self.may_stream
        return any(may_be)

    def counts(self, c: CostContext) -> tuple[int, int]:
        """Operations and bytes; InvalidArgumentError where shapes do not fit the op."""
        try:
            return self.counters.flops(c), self.counters.bytes(c)
        except (IndexError, ValueError):
            return op_cost.flops_of(c), op_cost.bytes_of(c)  # which say what is wrong

    def cost(self, c: CostContext, counts: tuple[int, int], times: Sequence[float], provenance: Provenance) -> OpCost:
        """Whole nanoseconds, with what the op waits; `times` are the time and its bounds."""
        wait = 0 if self.counters.waits is None else self.counters.waits(c)
        time_ns, low_ns, high_ns = times
        time = round(time_ns)
        return OpCost(
            time + wait, *counts, provenance, min(time, floor(low_ns)) + wait, max(time, ceil(high_ns)) + wait
        )


def has_part(calibration: Calibration, spec: DeviceSpec, part: str) -> bool:
    """Whether the device itself has a fit of a part."""
    fits = calibration.device(spec.name)
    return fits is not None and part in fits.table


def is_in_catalog(name: str) -> bool:
    """Whether the catalog has a device of that name and says how many SMs it has."""
    try:
        return bool(device_spec(name).sm_count)
    except NotFoundError:
        return False
