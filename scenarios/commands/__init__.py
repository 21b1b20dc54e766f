"""The commands of `partita`: a module per command, imported when the command runs, and modules that they share.

run.py         exact values and simulated time of a step
simulate.py    simulated time alone
explain.py     where the simulated time of a node comes from
partition.py   the graph of every device, as files
show.py        a graph as text, at a stage of the pipeline
inspect.py     what is in a graph
scenario.py    the stories
workload.py    the graph of a workload, from settings
devices.py     the catalog of devices and links
ops.py         what is known of an op
validate.py    how far predicted times are off
calibrate.py   models of a device fitted to measurements

request.py     from the flags of a command to a graph, a cluster, feeds and fetches
choices.py     counts of loops and branches
shapes.py      shapes of tensors
costs.py       sources of the times of ops
missing.py     hints for devices that do not exist
outputs.py     checks that output files can be written
feeds.py       tensors from .npy and .npz files, and back
screen.py      the two consoles, progress, one-line descriptions of values
failure.py     exit codes of errors
"""
