"""Plays bodies on the simulated hardware."""
