"""What numbers and pictures are made of: metrics by name, sizes as text, curves of a plot."""
