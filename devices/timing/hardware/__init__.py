"""The simulated hardware of a cluster: streams, launch threads and links on one simpy clock, and the log of a step."""
