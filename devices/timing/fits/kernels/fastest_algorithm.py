"""Which algorithm of a convolution is the fastest, by the fits of one or of several GPUs.

times_by_algorithm([V100's model], rows, V100)       its own numbers
times_by_algorithm([P4's, V100's], rows, T4)         the mean in log time, as `transferred` weighs donors
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .....graph.arrays import Floats
from ....spec import DeviceSpec
from .convolution_algorithms import ALGORITHMS
from .convolutions import Convolutions
from .kernel_model import KernelModel
from .transferred import weights_of


def times_by_algorithm(models: Sequence[KernelModel[Convolutions]], rows: Convolutions, spec: DeviceSpec) -> Floats:
    """In ns a row by algorithm of `ALGORITHMS`, a column by convolution; infinite where one does not apply."""
    times = [rows.times_ns(model.group(rows.groups[0]).numbers, spec) for model in models]
    mean: Floats = np.exp(np.tensordot(weights_of(models, spec), np.log(np.array(times)), axes=1))
    return mean


def fastest(times_ns: Floats) -> tuple[str, ...]:
    """By column of such times."""
    return tuple(ALGORITHMS[i] for i in times_ns.argmin(axis=0))
