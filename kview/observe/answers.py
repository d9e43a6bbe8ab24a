"""What all answers have in common."""


class Refused(Exception):
    """The answer holds an error instead of what was asked for. The text is Kafka's name of the error."""
