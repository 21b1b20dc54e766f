"""Readers of measurements: tables, traces of steps, logs of nccl-tests."""
