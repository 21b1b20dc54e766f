"""What is found out about a graph without changing it, and the words in which families of ops state their rules."""
