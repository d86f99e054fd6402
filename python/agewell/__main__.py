"""`python -m agewell`, the same as the `agewell` program."""

from agewell.cli import main

if __name__ == "__main__":
    main()
