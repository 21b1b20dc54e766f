"""What TensorFlow's cost estimator counts: the operations and bytes of each op that it has a rule for."""
