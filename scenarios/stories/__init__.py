"""Stories: shipped scripts that each simulate a run and explain what came out, to learn from and to copy."""
