"""Shape functions of the ops on queues, barriers, accumulators, staging areas and mutexes."""
