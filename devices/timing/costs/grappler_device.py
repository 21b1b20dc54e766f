"""The device of TensorFlow's cost estimator: a rate of arithmetic and one of memory, from a few whole numbers.

    GrapplerDevice("GPU", frequency_mhz=1328, num_cores=56, bandwidth_kb_per_s=732_000_000, architecture="6")
        gigaops     9519.104    56 * 1328 / 1000 * 64 cores of a multiprocessor * 2 operations of a multiply-add
        gb_per_s    732.0

The fields are those of TensorFlow's DeviceProperties. An op's cost depends on its device through the two rates alone,
so two devices with the same rates are the same device.
"""

from __future__ import annotations

from attrs import Attribute, field, frozen

from ....errors import InvalidArgumentError
from ...spec import DeviceSpec

_CORES_BEFORE = (("3", 32), ("4", 192), ("6", 128))
"""cores of a multiprocessor before an architecture; compared as text, so "10.0" is older than "3" for TensorFlow"""
_CORES_AFTER = 64
_OPERATIONS_OF_MULTIPLY_ADD = 2


def _positive(owner: object, attribute: Attribute[int], value: int) -> None:
    if value <= 0:
        raise InvalidArgumentError(f"{attribute.name} = {value} of a Grappler device must be above 0")


def _not_negative(owner: object, attribute: Attribute[int], value: int) -> None:
    if value < 0:
        raise InvalidArgumentError(f"{attribute.name} = {value} of a Grappler device must not be below 0")


@frozen
class GrapplerDevice:
    """The numbers of one device as TensorFlow's cost estimator reads them; InvalidArgumentError for impossible ones.

    `num_cores` of a GPU are its multiprocessors. `bandwidth_kb_per_s` 0 is TensorFlow's default: 32 GB/s for a CPU, 100
    for a GPU. `architecture` is a GPU's compute capability; TensorFlow takes a GPU without one for 100 Gop/s behind
    12 GB/s, and devices of other types for 1 Gop/s behind 12 GB/s.
    """

    device_type: str = "CPU"
    frequency_mhz: int = field(default=1000, validator=_positive, kw_only=True)
    num_cores: int = field(default=1, validator=_positive, kw_only=True)
    bandwidth_kb_per_s: int = field(default=0, validator=_not_negative, kw_only=True)
    architecture: str | None = field(default=None, kw_only=True)

    @classmethod
    def of_spec(cls, spec: DeviceSpec) -> GrapplerDevice:
        """The device with the rates of one lane of `spec`: its fp32 peak and its peak memory bandwidth.

        It is a CPU of one core, whose MHz are the peak in million operations per second, for GPUs too: what type the
        device has matters for its rates alone. Fractions of a MHz and of a kB/s are cut off. Efficiencies, faster
        element types and overheads of the spec do not count: TensorFlow's estimator knows none.
        """
        return cls(
            frequency_mhz=max(1, spec.peak_flops_per_s["fp32"] // spec.lanes // 10**6),
            bandwidth_kb_per_s=max(1, spec.memory_bandwidth_bytes_per_s // spec.lanes // 10**3),
        )

    @property
    def gigaops(self) -> float:
        """Operations per nanosecond."""
        if self.device_type == "GPU":
            return self._gpu_gigaops
        return self.num_cores * self.frequency_mhz * 1e-3 if self.device_type == "CPU" else 1.0

    @property
    def _gpu_gigaops(self) -> float:
        architecture = self.architecture
        if architecture is None:
            return 100.0
        cores = next((cores for newer, cores in _CORES_BEFORE if architecture < newer), _CORES_AFTER)
        return self.num_cores * self.frequency_mhz * 1e-3 * cores * _OPERATIONS_OF_MULTIPLY_ADD

    @property
    def gb_per_s(self) -> float:
        """Bytes per nanosecond."""
        if self.device_type not in ("CPU", "GPU") or (self.device_type == "GPU" and self.architecture is None):
            return 12.0
        if self.bandwidth_kb_per_s:
            return self.bandwidth_kb_per_s / 1e6
        return 32.0 if self.device_type == "CPU" else 100.0
