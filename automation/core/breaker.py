"""When a breaker opens, how long it stays open, and when it is off for good: figures and nothing else."""

WINDOW = 15 * 60  # seconds that are looked back on
FAILING_RECORDS = 5  # at least so many different records must have failed
FAILING_SHARE = 0.5  # of the records that were tried
FIRST_WAIT, LONGEST_WAIT = 60, 3600  # seconds until it is tried again; doubled each time
OFF_AFTER = 24 * 3600  # seconds without one success
FAILED_RUNS = 10  # of a rule, one after the other, over as many different records

CLOSED, OPEN, HALF_OPEN, OFF = "closed", "open", "half_open", "off"
BREAKER_STATES = (CLOSED, OPEN, HALF_OPEN, OFF)


def opens(*, failing: int, succeeding: int) -> bool:
    """Whether so many failing records beside so many that succeeded open a connection's breaker."""
    return failing >= FAILING_RECORDS and failing >= FAILING_SHARE * (failing + succeeding)


def wait_after(trips: int) -> int:
    """Seconds until an outside system is tried again that was found down so many times in a row (1 or more)."""
    return int(min(FIRST_WAIT * 2 ** min(trips - 1, 20), LONGEST_WAIT))


def is_off(*, down_for: float) -> bool:
    """Whether an outside system that has been down for so many seconds isn't tried any more."""
    return down_for >= OFF_AFTER
