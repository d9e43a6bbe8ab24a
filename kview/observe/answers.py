"""What answers have in common."""


class Refused(Exception):
    """An answer that holds an error in place of what was asked for; its text is Kafka's name of the error."""
