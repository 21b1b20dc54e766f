"""The numbers of a model of device: compute rates, memory, overhead.

Peak rates are those of the datasheet, per family of element types. Achieved rates are peak times efficiency, and
simulation uses only these: large bf16 products reach 51-97 % of the peak. Rates and sizes are positive integers in the
unit that their name has.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any

from attrs import Attribute, evolve, field, frozen

from ..errors import InvalidArgumentError
from ..graph.dtypes import DataType, base_type
from ..graph.ops.device_kinds import device_kind
from .units import MOST_BYTES, MOST_FLOPS_PER_S, MOST_NS

FAMILIES = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int8")

_FAMILY_OF = {
    DataType.DOUBLE: "fp64",
    DataType.COMPLEX128: "fp64",
    DataType.BFLOAT16: "bf16",
    DataType.HALF: "fp16",
    DataType.INT8: "int8",
    DataType.UINT8: "int8",
    DataType.QINT8: "int8",
    DataType.QUINT8: "int8",
    DataType.FLOAT8_E5M2: "fp8",
    DataType.FLOAT8_E4M3FN: "fp8",
    DataType.FLOAT8_E4M3FNUZ: "fp8",
    DataType.FLOAT8_E4M3B11FNUZ: "fp8",
    DataType.FLOAT8_E5M2FNUZ: "fp8",
    DataType.FLOAT4_E2M1FN: "fp4",
}
# The family whose units compute on elements of a narrower one, on hardware without units for the narrow one.
_WIDER = {"fp4": "fp8", "fp8": "fp16", "bf16": "fp32", "fp16": "fp32", "tf32": "fp32", "int8": "fp32", "fp64": "fp32"}


def whole(attribute: Attribute[Any], value: object, most: int = MOST_BYTES) -> None:
    """InvalidArgumentError unless `value` is an integer, at most `most`."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidArgumentError(f"{attribute.name} = {value!r} must be a whole number")
    if value > most:
        raise InvalidArgumentError(f"{attribute.name} = {value} is beyond any hardware; it must be at most {most:.0e}")


def _positive(owner: object, attribute: Attribute[int], value: int) -> None:
    whole(attribute, value)
    if value <= 0:
        raise InvalidArgumentError(f"{attribute.name} = {value} must be above 0")


def _not_negative(owner: object, attribute: Attribute[int], value: int) -> None:
    whole(attribute, value, MOST_NS if attribute.name.endswith("_ns") else MOST_BYTES)
    if value < 0:
        raise InvalidArgumentError(f"{attribute.name} = {value} must not be negative")


def _share(owner: object, attribute: Attribute[float], value: float) -> None:
    if not 0 < value <= 1:
        raise InvalidArgumentError(f"{attribute.name} = {value} must be above 0 and at most 1")


def _part(owner: object, attribute: Attribute[float], value: float) -> None:
    if not 0 <= value < 1:
        raise InvalidArgumentError(f"{attribute.name} = {value} must be 0 or more and below 1")


def _rates(owner: object, attribute: Attribute[Mapping[str, int]], value: Mapping[str, int]) -> None:
    unknown = sorted(set(value) - set(FAMILIES))
    if unknown:
        raise InvalidArgumentError(f"{attribute.name} has no family {unknown[0]!r}; families are {', '.join(FAMILIES)}")
    if "fp32" not in value:
        raise InvalidArgumentError(f"{attribute.name} must give a rate for 'fp32': other families fall back on it")
    for rate in value.values():
        whole(attribute, rate, MOST_FLOPS_PER_S)
    if any(rate <= 0 for rate in value.values()):
        raise InvalidArgumentError(f"{attribute.name} = {dict(value)} must be above 0 for every family")


@frozen
class DeviceSpec:
    """The numbers of one model of device; InvalidArgumentError where one cannot be right.

    `peak_flops_per_s` maps families (`FAMILIES`) to datasheet rates, "fp32" at least. `matrix_efficiency` is the share
    of a peak that large products and convolutions reach, `vector_efficiency` the share that other ops reach,
    `memory_efficiency` the share of `memory_bandwidth_bytes_per_s` that streaming ops reach. `sustained_clock` is the
    share of the clock of the peaks that the device keeps under load, and scales every compute rate.
    `launch_overhead_ns` is how long the host thread of a GPU takes to launch a kernel; on a CPU it is part of every op
    that computes.
    `kernel_floor_ns` is part of every op too: what its kernel takes however small it is. A CPU runs `lanes` ops at a
    time, each at 1 / `lanes` of its rates. `host_memory_bytes` is the memory of the host beside a GPU's own (0 for a
    CPU, whose memory is the host's). `host_link` and `peer_link` name catalog links to the host and to GPUs of the same
    host. `copy_engines` transfers at a time use the link to the host in one direction. Without these numbers the
    overhead is 0 and the efficiencies are 1, an ideal device. `sm_count` is the number of a GPU's multiprocessors and
    `l2_bytes` the size of its last cache, which models of products need; 0 where nobody knows them.
    `compute_capability` is that of an NVIDIA GPU times 10 (37 is 3.7): it says which kernels libraries have for its
    generation; 0 where nobody knows it. While a collective is under way on a GPU its kernels lack `communication_share`
    of its units. With `launches_ahead` its host thread launches kernels behind a collective while that is under way.
    `assumed` lists the numbers that a table of a cluster file left out, with the default that was used
    instead: {"launch_overhead": "5 us"}.
    """

    name: str
    kind: str
    peak_flops_per_s: Mapping[str, int] = field(validator=_rates, hash=False)  # a dict has no hash
    memory_bandwidth_bytes_per_s: int = field(validator=_positive)
    memory_bytes: int = field(validator=_positive)
    launch_overhead_ns: int = field(default=0, validator=_not_negative)
    matrix_efficiency: float = field(default=1.0, validator=_share)
    vector_efficiency: float = field(default=1.0, validator=_share)
    memory_efficiency: float = field(default=1.0, validator=_share)
    kernel_floor_ns: int = field(default=0, validator=_not_negative)
    lanes: int = field(default=1, validator=_positive)
    host_memory_bytes: int = field(default=0, validator=_not_negative)
    host_link: str | None = None
    peer_link: str | None = None
    copy_engines: int = field(default=2, validator=_positive)
    sm_count: int = field(default=0, validator=_not_negative)
    l2_bytes: int = field(default=0, validator=_not_negative)
    communication_share: float = field(default=0.0, validator=_part)
    sustained_clock: float = field(default=1.0, validator=_share)
    compute_capability: int = field(default=0, validator=_not_negative)
    launches_ahead: bool = False
    assumed: Mapping[str, str] = field(factory=dict, hash=False)

    def family(self, dtype: int, *, matrix: bool) -> str:
        """The family of units that computes on elements of `dtype`.

        `matrix` ops (products, convolutions) run narrow types on the units made for them, and float32 as tf32 where the
        device has it, which is TensorFlow's default. Other ops run narrow types at the fp32 rate.
        """
        family = _FAMILY_OF.get(base_type(dtype), "fp32")
        if not matrix:
            return family if family == "fp64" and "fp64" in self.peak_flops_per_s else "fp32"
        if family == "fp32" and "tf32" in self.peak_flops_per_s and base_type(dtype) is DataType.FLOAT:
            return "tf32"
        while family not in self.peak_flops_per_s:
            family = _WIDER[family]
        return family

    def achieved_flops_per_s(self, dtype: int, *, matrix: bool) -> int:
        """Operations/s that an op on `dtype` reaches: the family's peak times the efficiency of the kind of op.

        On a device with several lanes it is the rate of one lane.
        """
        share = self.matrix_efficiency if matrix else self.vector_efficiency
        peak = self.sustained_flops_per_s(self.family(dtype, matrix=matrix))
        return max(1, _times(peak, share) // self.lanes)

    def sustained_flops_per_s(self, family: str) -> int:
        """The datasheet's rate of a family, at the clock that the device keeps under load."""
        return _times(self.peak_flops_per_s[family], self.sustained_clock)

    @property
    def achieved_bytes_per_s(self) -> int:
        """Bytes/s that streaming ops reach on one lane: bandwidth times `memory_efficiency`, divided by `lanes`."""
        return max(1, _times(self.memory_bandwidth_bytes_per_s, self.memory_efficiency) // self.lanes)

    @property
    def launches_kernels(self) -> bool:
        """Whether a host thread launches its kernels: on devices with memory of their own."""
        return device_kind(self.kind).own_memory

    @property
    def op_overhead_ns(self) -> int:
        """Nanoseconds that are part of every op's time on the device; a launch only where no host thread does it."""
        return self.kernel_floor_ns + (0 if self.launches_kernels else self.launch_overhead_ns)


def without_tf32(spec: DeviceSpec) -> DeviceSpec:
    """The device with TF32 switched off: its products of float32 run at the rate of fp32. Itself if it has no TF32."""
    if "tf32" not in spec.peak_flops_per_s:
        return spec
    rates = {family: rate for family, rate in spec.peak_flops_per_s.items() if family != "tf32"}
    return evolve(spec, peak_flops_per_s=rates)


@lru_cache(256)  # a step asks thousands of times for the few rates of its devices
def _times(rate: int, share: float) -> int:
    """`rate * share`, rounded once: 0.1 is one tenth, not the float next to it."""
    return int(rate * Fraction(repr(share)))
