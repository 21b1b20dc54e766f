"""Predictions of measurements that a fit has not seen, and how far they are off, beside null models."""
