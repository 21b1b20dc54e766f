"""Ops whose meaning lies outside of a graph: the number of a replica, and calls of code that a program brings along."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....errors import NotFoundError
from ..registry import Construction, Kernel, kernel, simple

simple("XlaReplicaId", lambda: np.int32(0))


@kernel("XlaCustomCall", "XlaCustomCallV2")
def custom_call(node: Construction) -> Kernel:
    """Refuses to run with NotFoundError: there is no code to call."""
    target = node.attrs["target_name" if "target_name" in node.attrs else "call_target_name"].decode(errors="replace")

    def refuse(*_operands: Any) -> None:  # Any: tensors of any type
        raise NotFoundError(f"No registered implementation for untyped custom call to {target} for Host")

    return refuse
