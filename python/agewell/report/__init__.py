"""Pages and pictures that a browser shows."""
