"""Collectives whose members are in several processes: the session's process decides who meets, one of them combines."""
