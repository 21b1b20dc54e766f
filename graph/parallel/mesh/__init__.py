"""Rank programs: what one rank of a grid of devices runs, with the collectives of its axes, and a copy of it per rank.

marks           attrs of its nodes
mesh            the grid: ranks, axes, and the groups along them
rank_program    makes the nodes of collectives, with their gradients
write_out       a copy of the program for every rank; representatives in place of it
"""
