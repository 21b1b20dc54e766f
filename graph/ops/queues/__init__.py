"""Shape functions of the ops on what steps leave for each other: queues, barriers, accumulators, staging areas."""
