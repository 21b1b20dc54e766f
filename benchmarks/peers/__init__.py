"""The programs that Partita is compared with, each in its own process.

Requests and answers are one JSON object per line. The modules that run in a peer's process import the standard library,
numpy and that peer, and not Partita, which its interpreter need not have.
"""
