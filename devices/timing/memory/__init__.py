"""The memory that a step needs: what every tensor occupies, from when to when, and the peaks of every memory."""
