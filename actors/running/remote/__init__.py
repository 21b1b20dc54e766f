"""Steps over several processes: functions whose parts are in other processes, and what processes tell each other."""
