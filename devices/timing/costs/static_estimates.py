"""The estimates of TensorFlow's static cost model, in whole microseconds."""

from __future__ import annotations


def copy_time_estimate(size_bytes: int, network_latency_millis: float, estimated_gbps: float) -> int:
    """Microseconds to copy bytes in TensorFlow's static cost model: the float sum, cut to a whole number.

    bytes / (gbps * 1000 / 8) + latency * 1000 (CostModel::CopyTimeEstimate).
    """
    bytes_per_micro = estimated_gbps * 1000.0 / 8
    return int(size_bytes / bytes_per_micro + network_latency_millis * 1000.0)


def computation_time_estimate(math_ops: int) -> int:
    """Microseconds of arithmetic in TensorFlow's static cost model: a thousand operations each.

    Cut towards zero, as C++ divides (CostModel::ComputationTimeEstimate).
    """
    return math_ops // 1000 if math_ops >= 0 else -(-math_ops // 1000)
