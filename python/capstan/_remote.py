"""How functions, their arguments and their results travel between ranks.

A function is an object per worker: each worker receives it once. A function of a module is sent as its name, and
the worker compares its code with the coordinator's. Any other function is sent by value, with cloudpickle.

Arguments are one pickle. A variable is pickled as its number. The result of an earlier function, or an object
per worker, is pickled as its position in one of two lists that are sent with the pickle.
"""

import contextlib
import hashlib
import importlib
import io
import pickle
import sys
import threading
import traceback
import types
from typing import Any

from . import _capstan, errors

#: Largest pickle of a function that is sent by value.
MAX_FUNCTION_BYTES = 4 << 20

_PROTOCOL = pickle.HIGHEST_PROTOCOL
_NONE = pickle.dumps(None, _PROTOCOL)
_NO_ARGUMENTS = pickle.dumps(((), {}), _PROTOCOL)


class _Local(threading.local):
    packing: Any = None  # lists of futures and objects, while this thread pickles arguments
    unpacking: Any = None  # lists of values and objects, while this thread unpickles arguments


_local = _Local()


def _value(index):
    return pickle.loads(_local.unpacking[0][index])


def _object(index):
    return _local.unpacking[1][index]


def reduce_future(future):
    """Pickle the result of an earlier function."""
    return _value, (_position(future, 0, "RemoteValue"),)


def reduce_object(handle):
    """Pickle an object per worker."""
    return _object, (_position(handle, 1, "object per worker"),)


def _position(handle, kind, name):
    if _local.packing is None:
        raise TypeError(f"a {name} can be an argument of a scheduled function only")
    handles = _local.packing[kind]
    handles.append(handle)
    return len(handles) - 1


def packed(value, dumps=pickle.dumps):
    """Return the pickle of `value`, the futures and the objects per worker that it contains."""
    outer, _local.packing = _local.packing, ([], [])
    try:
        return dumps(value, _PROTOCOL), *_local.packing
    finally:
        _local.packing = outer


def packed_arguments(name, args, kwargs):
    """Return packed((args, kwargs)). Raise InvalidArgumentError naming an argument that cannot be pickled."""
    if not args and not kwargs:
        return _NO_ARGUMENTS, [], []
    try:
        return packed((args, kwargs))
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        for label, value in [*enumerate(args), *kwargs.items()]:
            try:
                packed(value)
            except Exception as reason:
                raise errors.InvalidArgumentError(
                    f"{name}: argument {label!r}, a {type(value).__name__}, cannot be sent to a worker: {reason}"
                ) from error
        raise


def loads(payload, values, objects):
    """Unpickle arguments on the worker that runs their function."""
    outer, _local.unpacking = _local.unpacking, (values, objects)
    try:
        return pickle.loads(payload)
    finally:
        _local.unpacking = outer


# Functions.


def code_hash(function):
    """Return a hash of a function's code that does not depend on the path of its file or on its line numbers."""
    digest = hashlib.blake2b(digest_size=16)

    def add(code):
        digest.update(code.co_code)
        digest.update(repr((code.co_names, code.co_varnames, code.co_freevars)).encode())
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                add(constant)
            else:
                digest.update(repr(constant).encode())

    code = getattr(function, "__code__", None)
    if code is not None:
        add(code)
    return digest.hexdigest()


def _named(module, qualname):
    found = sys.modules.get(module) or importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    return found


def name_of(function):
    """Return the name of a function for messages."""
    return getattr(function, "__qualname__", type(function).__name__)


def is_named(function):
    """Return whether another process finds the function by its module and name."""
    module, qualname = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if module is None or qualname is None or "<" in qualname:
        return False
    try:
        return _named(module, qualname) is function
    except (ImportError, AttributeError):
        return False


def _by_name(module, qualname, expected):
    try:
        function = _named(module, qualname)
    except (ImportError, AttributeError) as error:
        where = "above Server.join" if module == "__main__" else f"in module {module}"
        raise errors.FailedPreconditionError(
            f"function {qualname}: not found on this worker ({error}); define it {where}, or schedule a lambda"
        ) from error
    if code_hash(function) != expected:
        raise errors.FailedPreconditionError(
            f"function {module}.{qualname} differs between the coordinator and this worker; start all ranks with"
            " the same sources"
        )
    return function


def packed_function(function):
    """Return the pickle from which each worker makes the function, and the objects per worker that it captures."""
    if is_named(function):
        return pickle.dumps((_by_name, (function.__module__, function.__qualname__, code_hash(function)))), []
    import cloudpickle

    name = name_of(function)
    try:
        payload, futures, objects = packed(function, cloudpickle.dumps)
    except Exception as error:
        raise errors.InvalidArgumentError(
            f"{name}: cannot be sent to a worker: {_unpicklable_part(function) or error}"
        ) from error
    if futures:
        raise errors.InvalidArgumentError(f"{name}: captures a RemoteValue; pass it as an argument")
    if len(payload) > MAX_FUNCTION_BYTES:
        raise errors.InvalidArgumentError(
            f"{name}: captures {len(payload) >> 20} MiB{_largest_part(function)}, at most"
            f" {MAX_FUNCTION_BYTES >> 20} MiB are allowed; pass large values as arguments, or create them on each"
            " worker with create_per_worker_resource"
        )
    return pickle.dumps((_unpickled, (payload,))), objects


def _unpickled(payload):
    return pickle.loads(payload)


def _captures(function):
    code = getattr(function, "__code__", None)
    if code is None:
        return
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        with contextlib.suppress(ValueError):  # an empty cell
            yield name, cell.cell_contents
    for name in code.co_names:
        if name in function.__globals__:
            yield name, function.__globals__[name]


def _unpicklable_part(function):
    import cloudpickle

    for name, value in _captures(function):
        try:
            packed(value, cloudpickle.dumps)
        except Exception as error:
            return f"it uses {name}, a {type(value).__name__}: {error}"
    return None


def _largest_part(function):
    import cloudpickle

    sizes: dict[str, int] = {}
    for name, value in _captures(function):
        with contextlib.suppress(Exception):
            sizes[name] = len(packed(value, cloudpickle.dumps)[0])
    return f", most of it in {max(sizes, key=lambda name: sizes[name])}" if sizes else ""


# On a worker, called by the extension module.


def run(function, payload, objects, values):
    """Run a function, and return the pickle of its result."""
    if payload is _NO_ARGUMENTS or (payload == _NO_ARGUMENTS):
        result = function()
    else:
        args, kwargs = loads(payload, values, objects)
        result = function(*args, **kwargs)
    if result is None:
        return _NONE
    try:
        return pickle.dumps(result, _PROTOCOL)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise errors.InvalidArgumentError(
            f"{name_of(function)}: its result, a {type(result).__name__}, cannot be sent to the coordinator: {error}"
        ) from error


def make(payload, objects):
    """Make the object of this worker."""
    outer, _local.unpacking = _local.unpacking, ((), objects)
    try:
        function, args = pickle.loads(payload)
        return function(*args)  # _unpickled reads the objects that a function captures
    finally:
        _local.unpacking = outer


def code_and_message(error):
    """Return the code and the message with which an exception of a function travels to the coordinator."""
    if isinstance(error, errors.CapstanError):
        code, message = error.code, error.message
    elif isinstance(error, StopIteration):
        return errors.OutOfRangeError.code, "end of the dataset"
    else:
        code, message = errors.UnknownError.code, f"{type(error).__name__}: {error}"
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next  # skips the frames of this file
    if frames is None or "\nTraceback of the worker" in message:
        return code, message
    text = io.StringIO()
    traceback.print_tb(frames, file=text)
    return code, f"{message}\nTraceback of the worker (most recent call last):\n{text.getvalue().rstrip()}"


_capstan.set_exception_of_code(errors.exception_of_code)
_capstan.set_hooks(run, make, code_and_message)
