"""The time of a training step in closed form, in columns over splits, with where it goes and how sure it is.

    step_times(step, machine, configurations)      ns of each configuration, by category, with an interval

kernels.py     the kernels of a layer, and their times by the fits of kernels
layers.py      which kernels the layers of a model have on a rank
exchanges.py   collectives along the axes of a split
gradients.py   what follows the backward pass
terms.py       all of these, before any number of training
overlaps.py    what computation hides
assembly.py    times of steps from terms and numbers
columns.py     the answer
"""

from __future__ import annotations

from .columns import StepTimes as StepTimes, step_times as step_times
