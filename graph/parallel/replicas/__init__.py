"""How the program of one replica is made from the graph of one device, and copied for the others."""
