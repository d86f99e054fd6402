"""The errors that agewell reports to its user.

Each carries one complete line: what is wrong, where, and what to do. `InputError` is bad usage or
bad input and ends the command line with exit status 2; `RunError` is a run that failed, exit status
1.
"""

from agewell._agewell import AgewellError, InputError, RunError

__all__ = ["AgewellError", "InputError", "ProgramFailedError", "RunError"]


class ProgramFailedError(Exception):
    """A program that was run for the user has failed; its status becomes that of the command.

    Attributes:
        status: As shells have it: of a program that a signal ended, 128 and the signal's number.
    """

    def __init__(self, status: int) -> None:
        super().__init__(f"exit status {status}")
        self.status = status
