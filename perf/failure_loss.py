"""failure_loss.py -- computes the expected part of the time that a job loses to failures of hosts.

Nothing is simulated. One rank runs on a host, failures of hosts are independent, and each one loses the host.
"""
import math

DAY = 86400
# Llama 3 (arXiv 2407.21783): 419 unexpected interruptions in 54 days on 16,384 GPUs, which are 2,048 hosts of 8.
HOST_FAILURES_PER_SECOND = 419 / (54 * DAY * 2048)
# Mean time until a stopped worker was reported with --heartbeat-timeout 6s, measured (docs/simulation.md).
DETECTION = 4.6
# 1e9 rows of 64 floats.
TABLE_BYTES = 1e9 * 64 * 4
# First save of 2 GiB during pushes, measured (docs/performance.md): 3.9 s. Training is assumed to stop for a save.
PS_WRITE_RATE = 2 * 2**30 / 3.9
# Assumptions: bytes/s of the file system, time until a job runs again after its end, time until another worker has
# joined in place of a lost one, and time between two planned restarts, which renew lost replicas.
FILE_SYSTEM_RATE = 10e9
RESTART = 600
REPLACEMENT = 3600
RENEWAL = 7 * DAY


def save_seconds(ps):
    """Returns the time of a save: all ps write at once, and share the file system."""
    return TABLE_BYTES / min(ps * PS_WRITE_RATE, FILE_SYSTEM_RATE)


def loss_of_interval(rate, save, restart, interval):
    """Returns the part of the time that is lost if a job ends `rate` times a second and saves after each `interval`.

    Daly 2006, the complete cost function, with M = 1 / rate: for a useful time t, the job takes
    t / interval * M * exp(restart / M) * (exp((interval + save) / M) - 1).
    """
    exponent = rate * restart
    growth = math.expm1(rate * (interval + save))
    return 1 - rate * interval * math.exp(-exponent) / growth


def best_interval(rate, save):
    """Returns Daly's optimum: sqrt(2 save M) * (1 + sqrt(x) / 3 + x / 9) - save with M = 1 / rate and x = save / 2M.

    The optimum is M if save >= 2M.
    """
    x = save * rate / 2
    if x >= 1:
        return 1 / rate
    return math.sqrt(2 * save / rate) * (1 + math.sqrt(x) / 3 + x / 9) - save


def checkpoint_loss(rate, save, restart):
    """Returns loss_of_interval() of the best interval; 0 if the job never ends."""
    return loss_of_interval(rate, save, restart, best_interval(rate, save)) if rate > 0 else 0


def expected_loss(scheme, workers, ps):
    """Returns the expected part of the time that is lost with one coordinator and the given numbers of hosts.

    1 - (1 - checkpoint_loss(end)) * (1 - stall), where r is the rate of a host's failures and

    scheme        end: rate of ends of the job          stall: part of the time without progress
    job ends      (1 + workers + ps) r                  0
    synchronous   (1 + ps) r                            workers r DETECTION + r REPLACEMENT
    asynchronous  (1 + ps) r                            r REPLACEMENT
    replicas      r + ps (1 - exp(-r T))^2 / T          ps r DETECTION + r REPLACEMENT + RESTART / T

    A lost worker is 1 / workers of the job until its replacement joins. With replicas, the job ends if a ps and its
    replica are lost within T = RENEWAL, after which the job is restarted as planned. A failover to a replica takes no time
besides its detection. The stall of a ps whose replica is lost is not counted.
    """
    r = HOST_FAILURES_PER_SECOND
    replacement = r * REPLACEMENT
    pair = ps * math.expm1(-r * RENEWAL) ** 2 / RENEWAL
    ends, stall = {
        "job ends": ((1 + workers + ps) * r, 0),
        "synchronous": ((1 + ps) * r, workers * r * DETECTION + replacement),
        "asynchronous": ((1 + ps) * r, replacement),
        "replicas": (r + pair, ps * r * DETECTION + replacement + RESTART / RENEWAL),
    }[scheme]
    return 1 - (1 - checkpoint_loss(ends, save_seconds(ps), RESTART)) * (1 - stall)
