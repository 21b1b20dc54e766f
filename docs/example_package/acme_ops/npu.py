"""NPU: a kind of device that placement prefers to CPUs, with one model, the made-up "Acme N1"."""

from __future__ import annotations

from pathlib import Path

from partita.devices import DeviceKind, KindDefaults, add_models, register_device_kind

register_device_kind(
    DeviceKind("NPU", priority=220),
    KindDefaults(
        spec="Acme N1",
        host_link="PCIe5 x16",
        assumed={
            "launch_overhead": "8 us",
            "matrix_efficiency": "70 %",
            "vector_efficiency": "40 %",
            "memory_efficiency": "80 %",
        },
    ),
)
add_models(Path(__file__).parent)
