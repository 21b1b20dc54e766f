"""Traced steps: parts and callees that record what plans with clocks do not see."""
