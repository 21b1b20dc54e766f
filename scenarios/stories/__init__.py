"""Stories: shipped example scripts, each of which simulates a run and explains the result."""
