"""Attrs of the nodes of rank programs, by which passes and the clock know what they are for."""

from __future__ import annotations

MESH = "_mesh"
"""the mesh as text, `Mesh.text`"""
AXIS = "_axis"
"""the axes that a collective runs along"""
INSTANCE = "_instance"
"""a number that tells a collective from the others of its program"""
OF_RANK = "_of_rank"
"""on a constant that differs by rank: "position:AXES" or "key:AXES" """
COUNTS_MICROBATCHES = "_counts_microbatches"
"""on the constant that is the number of the micro-batch"""
MULTIPLICITY = "_multiplicity"
"""the number of devices that a node stands for"""
