"""Partita rehearses a multi-device dataflow run: exact values and virtual time from one partitioned graph."""
