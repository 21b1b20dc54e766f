"""Steps on simulated hardware: real values, and simulated time decides what runs next."""
