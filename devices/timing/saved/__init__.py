"""Timelines in files that keep everything: columns of numbers and one JSON document in a zip."""
