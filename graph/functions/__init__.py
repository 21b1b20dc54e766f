"""Functions: a library of them, and what one is when it is called.

`library` finds functions by name and says which others they need; `body` turns a function and the attrs of a call into
a graph of its own; `calls` says which node calls what. Always holds: a name means one function, and never an op.
"""
