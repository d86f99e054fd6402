"""What each command leaves, as a part of a page: one module a kind, each with a function `part`."""
