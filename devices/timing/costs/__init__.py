"""Sources of op costs: roofline, fits, measurements, TensorFlow's estimator, and which of them speaks first."""
