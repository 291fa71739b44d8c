"""poll.py -- waits for progress of other processes, with a deadline, and for random moments at which a test injects a fault."""
import time


def poll_until(look, seconds, period=0.01):
    """Returns the first true result of `look()`, or the last result once `seconds` have passed."""
    deadline = time.monotonic() + seconds
    while not (found := look()) and time.monotonic() < deadline:
        time.sleep(period)  # between two polls
    return found


def wait_random(random, least, most):
    """Sleeps for a time between `least` and `most` seconds, drawn from the generator `random`."""
    time.sleep(random.uniform(least, most))  # faults must fall at any moment, not only right after output
