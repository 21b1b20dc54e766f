"""The programs that Partita is compared with, each in a process of its own.

Flows in: requests, one JSON object a line. Flows out: answers, the same way. Always holds: the modules that run in a
peer's process import the standard library, numpy and that peer; never Partita, which its interpreter need not have.
"""
