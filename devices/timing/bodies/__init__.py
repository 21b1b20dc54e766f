"""What is played: graphs planned for the simulated hardware."""
