"""Reports on a step and its cost, as lines of text."""

from __future__ import annotations

from .limits import limits
from .step import device_bars, step_report
from .text import NOT_CALIBRATED, columns, value_line

__all__ = ["NOT_CALIBRATED", "columns", "device_bars", "limits", "step_report", "value_line"]
