"""What one device runs by itself, without messages: loops, and functions that their caller takes in."""
