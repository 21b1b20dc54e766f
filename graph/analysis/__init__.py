"""Facts that are computed about a graph without changing it, and the tables in which op families state their rules."""
