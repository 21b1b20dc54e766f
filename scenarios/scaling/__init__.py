"""How the training steps of image networks scale over GPUs and hosts: simulated, and compared with what 2017 measured."""
