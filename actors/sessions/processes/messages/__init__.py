"""What the processes of a session say to each other, as values and as messages of the wire.

control.py     what a session and its workers say: open, register, start, abort, over ...
layout.py      who hosts which device, and the incarnations of devices
records.py     any of these, and the messages of steps (`running.remote.messages`) <-> `WireMessage`
tensors.py     what exchanges say (`rendezvous.messages`) <-> `WireMessage`
errors.py      errors <-> JSON
"""
