"""The commands of `partita`: a module per command, imported when the command runs, and modules that they share.

run.py         exact values and simulated time of a step
simulate.py    simulated time alone
partition.py   the graph of every device, as files
inspect.py     what is in a graph
show.py        a graph as text, at a stage of the pipeline
ops.py         what is known of an op
scenario.py    the stories
missing.py     hints for devices that do not exist
devices.py     the catalog of devices and links
request.py     from the flags of a command to a graph, a cluster, feeds and fetches
outputs.py     checks that output files can be written
feeds.py       tensors from .npy and .npz files, and back
screen.py      the two consoles, progress, one-line descriptions of values
failure.py     exit codes of errors
"""
