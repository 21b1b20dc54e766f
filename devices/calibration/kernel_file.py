"""A file of measured kernels: which columns it has, and how its lines become rows of a family.

    gemm_lowbit.csv   h100_sxm,fp8,64,4096,4096,0.0071   ->   LowBitRows({"dtype": ["fp8"]}, {"m": [64], ...}), 7100 ns

`validate` predicts such files, `tools/make_catalog_fits.py` fits the catalog to them. A column that only teaches, such
as the algorithm that ran, is a label: rows to predict have none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from attrs import field, frozen

from ...errors import NotFoundError
from ...graph.arrays import Floats
from ..catalog import device_spec
from ..spec import DeviceSpec
from ..timing.fits.kernels.kernel_model import KernelModel
from ..timing.fits.kernels.kernel_rows import KernelRows
from .fitting.kernels import TimedKernels, fit_kernels
from .validation.rows import TEXT, MeasuredRows, read_csv

Measured = Mapping[str, TimedKernels[Any]]  # Any: rows of one family; by the name of the system in the file
Fit = Callable[..., dict[str, KernelModel[Any]]]
"""of (measured, lines of each system, source=, date=, pooled=)"""


def _fit(
    measured: Measured, lines: Mapping[str, MeasuredRows], *, source: str, date: str, pooled: bool
) -> dict[str, KernelModel[Any]]:
    return fit_kernels(measured, source=source, date=date, pooled=pooled)


@frozen
class KernelFile:
    """A file: the family of its lines, the column of the system, key columns by kind, and the measured column.

    `rows_of` makes rows of lines; lines that `is_modelled` leaves out (a mask) are neither fitted nor predicted. `fit`
    makes the models, device by device, from the rows and the lines that they are of, with their labels. With `pooled`
    all systems share a surface (`fit_kernels`). `labels_of` says which first label models expect of rows on a device.
    """

    name: str
    file: str
    family: type[KernelRows]
    system: str
    keys: Mapping[str, str]
    latency: str
    ns_per_unit: float
    rows_of: Callable[[MeasuredRows], KernelRows]
    labels: Sequence[str] = ()
    labels_of: Callable[[Sequence[KernelModel[Any]], KernelRows, DeviceSpec], tuple[str, ...]] | None = None
    is_modelled: Callable[[MeasuredRows], Any] | None = None  # Any: a mask
    fit: Fit = _fit
    pooled: bool = True
    by: Sequence[str] = field(factory=tuple)
    """further key columns by which a report splits errors"""

    def read(self, paths: Sequence[Path], may_be_empty: bool) -> MeasuredRows:
        """The lines of the file that are modelled."""
        lines = read_csv(
            paths[0],
            {self.system: TEXT, **self.keys},
            [self.latency],
            labels=self.labels,
            may_be_empty=may_be_empty,
        )
        return lines if self.is_modelled is None else lines.take(np.flatnonzero(self.is_modelled(lines)))

    def timed(self, lines: MeasuredRows, spec: DeviceSpec) -> TimedKernels[Any]:
        """Lines of one system."""
        times: Floats = lines.measured[self.latency] * self.ns_per_unit
        return TimedKernels(self.rows_of(lines), times, spec)

    def by_system(self, lines: MeasuredRows) -> dict[str, MeasuredRows]:
        """The lines of each system, by its name in the file."""
        return {name: lines.take(lines.where(self.system, name)) for name in lines.distinct(self.system)}

    def models(
        self, lines: MeasuredRows, source: str = "measured", date: str = "", *, pooled: bool | None = None
    ) -> dict[str, KernelModel[Any]]:
        """The fitted model of each system that the catalog knows, by its name in the file."""
        known = {name: some for name, some in self.by_system(lines).items() if spec_of(name) is not None}
        measured = {name: self.timed(some, device_spec(name)) for name, some in known.items()}
        pooled = self.pooled if pooled is None else pooled
        return self.fit(measured, known, source=source, date=date, pooled=pooled) if measured else {}


def spec_of(system: str) -> DeviceSpec | None:
    """The catalog's spec of a system of the measurements; None for an unknown one."""
    try:
        return device_spec(system)
    except NotFoundError:
        return None
