"""From measurements to calibration files: sources of measurements, fits, and how far the fits are off."""
