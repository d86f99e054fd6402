"""agewell beside what a user would pick instead, in one run and as ratios."""
