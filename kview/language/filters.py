"""What a filter may say, and why one is wrong, in words."""

FORMS = "words, !word, /regex/, topic: group: broker: rack: state:"
"""The terms of a filter, for help and for the line in which it is typed."""
