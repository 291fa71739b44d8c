"""Exceptions, one class for each code, with the names of ``tf.errors``.

``docs/errors.md`` describes for each code the state of the caller and the next step.
"""


class CapstanError(Exception):
    """Base of all exceptions of Capstan.

    Attributes
    ----------
    code : int
        The code of gRPC and TensorFlow, such as 3 for an invalid argument.
    message : str
        What was found, what was expected, and what to do. An exception of a function that ran on a worker has
        the traceback of that worker, too.
    """

    code = 2

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.message = message


class CancelledError(CapstanError):
    """Cancelled by an earlier error or on request; schedule the function again."""

    code = 1


class UnknownError(CapstanError):
    """A scheduled function raised an exception that is not one of these."""

    code = 2


class InvalidArgumentError(CapstanError, ValueError):
    """The value is wrong whatever the state of the system."""

    code = 3


class DeadlineExceededError(CapstanError, TimeoutError):
    """The call did not complete in time; the message names the ranks waited for."""

    code = 4


class NotFoundError(CapstanError):
    """No such file, variable or setting."""

    code = 5


class AlreadyExistsError(CapstanError):
    """The name is taken."""

    code = 6


class PermissionDeniedError(CapstanError, PermissionError):
    """The file system denied access."""

    code = 7


class ResourceExhaustedError(CapstanError):
    """Out of memory, disk or ring space."""

    code = 8


class FailedPreconditionError(CapstanError):
    """A valid call in the wrong state or role."""

    code = 9


class AbortedError(CapstanError):
    """The work was lost with its worker and did not run again."""

    code = 10


class OutOfRangeError(CapstanError, IndexError):
    """The end of a dataset, or an index past the end."""

    code = 11


class UnimplementedError(CapstanError, NotImplementedError):
    """Not supported by this build."""

    code = 12


class InternalError(CapstanError):
    """A library call failed, or an invariant of Capstan is violated."""

    code = 13


class UnavailableError(CapstanError):
    """A rank is dead or unreachable; the message names it and its host."""

    code = 14


class DataLossError(CapstanError):
    """A file is damaged or not of the expected type."""

    code = 15


_BY_CODE = {cls.code: cls for cls in CapstanError.__subclasses__()}


def exception_of_code(code: int, message: str) -> CapstanError:
    """Return the exception of a code."""
    return _BY_CODE.get(code, UnknownError)(message)
