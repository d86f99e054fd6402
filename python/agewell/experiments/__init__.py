"""Experiments as they are written down, run and read back, and what they are put together from."""
