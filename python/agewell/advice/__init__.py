"""What to choose: layouts compared, the best of them found, segments sized for a disk."""
