"""What the lists of events about one partition or one broker say."""

from kview.language import words

TITLE_OF_PARTITION = "HISTORY of leader and ISR, newest first"
NOTHING_OF_PARTITION = "no leader or ISR change in the last ten minutes, or since kview started watching"
TITLE_OF_BROKER = "EVENTS that name this broker, newest first"
NOTHING_OF_BROKER = "none in the last ten minutes, or since kview started"


def unnamed(number: int) -> str:
    """Return how many events may concern the partition without naming it, '' if there are none."""
    if not number:
        return ""
    return f"{words.plural(number, 'event')} naming only some partitions may concern this one"
