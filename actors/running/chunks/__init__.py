"""Chunks of instructions: how they run, how long they take, and what is learnt from that."""
