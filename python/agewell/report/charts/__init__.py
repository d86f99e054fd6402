"""What is drawn of each kind of result."""
