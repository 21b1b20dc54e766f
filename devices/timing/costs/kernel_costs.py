"""Costs of kernels of a family: by the device's own fit, or by those of other devices.

kernel_cost(device_spec("H100-SXM"), "decode_attention", rows)      OpCost(..., provenance="fitted")
the same on A30, which nobody measured                              OpCost(..., provenance="transferred")
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from ....graph.suggestions import suggestion
from ...spec import DeviceSpec
from ..fits.calibration import Calibration, DeviceFits
from ..fits.kernels.kernel_model import KernelModel, at_least
from ..fits.kernels.kernel_rows import KernelRows
from ..fits.kernels.transferred import transferred_kernels
from ..fits.prediction import Prediction
from .source import OpCost, UnknownCost


class KernelFits(Protocol):
    """Finds the models of kernels; `Calibration` does."""

    def device(self, name: str) -> object:
        """The models of a device; None for one without any."""
        ...

    def having(self, part: str) -> Iterable[DeviceFits]:
        """The devices that have a model of that part."""
        ...


class KernelAnswer(NamedTuple):
    """What was said of rows, and the models that said it: the device's own alone, or those of the donors."""

    said: Prediction
    models: tuple[KernelModel[Any], ...]  # Any: rows of one family or another

    @property
    def is_own(self) -> bool:
        """Whether the device itself was measured."""
        return self.said.provenance == "fitted"


def kernel_answer(spec: DeviceSpec, rows: KernelRows, calibration: KernelFits | None = None) -> KernelAnswer:
    """By the device's own model, or by all that have one; UnknownCost for a CPU, and where no device has a fit.

    All rows are of one group. `calibration` None is the catalog's.
    """
    part, group = rows.PART, rows.groups[0]
    if not spec.launches_kernels:
        raise UnknownCost(f"{spec.name} is a {spec.kind}, and {rows.WHAT} are modelled on GPUs; ask for a GPU")
    calibration = Calibration.of_catalog() if calibration is None else calibration
    fits = calibration.device(spec.name)
    own = fits.kernels(part) if isinstance(fits, DeviceFits) else None
    if own is not None and own.has(rows):
        return KernelAnswer(at_least(own.predict_kernels(rows), rows.floor_ns(spec)), (own,))
    models = [model for each in calibration.having(part) if (model := each.kernels(part)) is not None]
    donors = [model for model in models if model.has(rows)]
    if not donors:
        groups = list(dict.fromkeys(name for model in models for name in model.groups))
        has = f"; there are fits for {', '.join(groups)}{suggestion(group, groups)}" if groups else ""
        raise UnknownCost(f"no device of the calibration has a fit of {rows.WHAT} for {group!r}{has}")
    return KernelAnswer(transferred_kernels(donors, rows, spec), tuple(donors))


def kernel_cost(spec: DeviceSpec, rows: KernelRows, calibration: Calibration | None = None) -> OpCost:
    """The cost of the first row, of which there is one; errors as `kernel_answer`."""
    said = kernel_answer(spec, rows, calibration).said
    return said.first_cost(rows.flops, rows.bytes)
