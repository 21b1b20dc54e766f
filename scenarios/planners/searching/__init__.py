"""Which configurations of a model a cluster allows, and the fastest of them that fit.

axes.py         what a caller wants searched or fixed
space.py        the values that are tried of each axis, and in words what that leaves out
grid.py         all configurations as columns
rules.py        what `Split.check` refuses, in columns
enumeration.py  the possible configurations, and the others by reason
search.py       memory, then time, then order
refusals.py     errors where nothing is possible or nothing fits
plan.py         TrainingPlan: the answer
"""
