"""How training steps of image networks scale over GPUs and hosts: simulated, and compared with measurements of 2017."""
