"""Placeholder until D's module lands (not committed)."""
from __future__ import annotations
from typing import Any
def memory_types(properties: Any, device_type: str) -> tuple[tuple[bool, ...], tuple[bool, ...]]:
    return (False,) * len(properties.input_types), (False,) * len(properties.output_types)
