"""Time of collectives: measured curves where a system has them, algorithms over the links of a cluster elsewhere."""
