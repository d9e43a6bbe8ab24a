"""What the lists of events about one partition or one broker say."""

from kview.language import words

TITLE_OF_PARTITION = "HISTORY of leader and ISR, newest first"
NOTHING_OF_PARTITION = "no change of leader or ISR in the last ten minutes, or since kview began to watch"
TITLE_OF_BROKER = "EVENTS that name this broker, newest first"
NOTHING_OF_BROKER = "none in the last ten minutes, or since kview began to watch"


def unnamed(number: int) -> str:
    """Return that this many events do not name all of their partitions, '' if there are none."""
    if not number:
        return ""
    verb = "does" if number == 1 else "do"
    return f"{words.plural(number, 'event')} about many partitions {verb} not name all of them"
