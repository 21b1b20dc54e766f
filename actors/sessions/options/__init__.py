"""What the options of sessions, steps and callables mean: TensorFlow's messages, checked and taken apart."""
