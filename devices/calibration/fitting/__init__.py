"""Fits the models of `devices.timing.fits` and `devices.timing.collectives` to measurements."""
