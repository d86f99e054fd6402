"""The errors that agewell reports to its user.

Each carries one complete line: what is wrong, where, and what to do. `InputError` is bad usage or
bad input and ends the command line with exit status 2; `RunError` is a run that failed, exit status
1.
"""

from agewell._agewell import AgewellError, InputError, RunError

__all__ = ["AgewellError", "InputError", "RunError"]
