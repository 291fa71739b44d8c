"""poll.py -- waits for what other processes do, with a deadline; and random moments at which a test strikes."""
import time


def poll_until(look, seconds, period=0.01):
    """What `look()` returns as soon as that is true, or last when `seconds` have passed."""
    deadline = time.monotonic() + seconds
    while not (found := look()) and time.monotonic() < deadline:
        time.sleep(period)  # between two polls
    return found


def wait_random(moment, least, most):
    """Returns after `least` to `most` seconds, which follow from the seed of `moment`."""
    time.sleep(moment.uniform(least, most))  # a fault may fall at any moment, not only where a job says something
