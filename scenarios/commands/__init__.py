"""What the commands of `partita` do: one module a command, imported when the command runs, and what they share.

run.py         exact values and simulated time of a step
simulate.py    simulated time alone
partition.py   the graph of every device, as files
inspect.py     what is in a graph
devices.py     the catalog of devices and links
request.py     from the flags of a command to a graph, a cluster, feeds and fetches
outputs.py     whether what is to be written can be
feeds.py       tensors from .npy and .npz files, and back
screen.py      the two consoles, progress, one-line descriptions of values
failure.py     which error ends the process with which code
"""
