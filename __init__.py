"""Partita runs a dataflow graph on simulated devices: exact values and virtual time from one partitioned graph."""
