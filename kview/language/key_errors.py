"""What is wrong with a key file, or with the choices kept for a cluster, as sentences."""

from collections.abc import Mapping

from kview.errors import ErrorKind
from kview.language.error_words import ErrorWords

_EXAMPLE = 'write one line for each action, such as sort = "s" or down = ["down", "j"]'

WORDS: Mapping[ErrorKind, ErrorWords] = {
    ErrorKind.KEY_FILE_GARBLED: ErrorWords("{file}, line {line}: this is not valid TOML", _EXAMPLE),
    ErrorKind.KEY_LINE_WRONG: ErrorWords(
        "{file}, line {line}: {action!r} needs a key, or a list of keys", _EXAMPLE
    ),
    ErrorKind.KEY_FILE_HEADING: ErrorWords(
        "{file}, line {line}: [{heading}] is a heading, and the key file has no sections",
        'remove that line; the file has one line for each action, such as sort = "s"',
    ),
    ErrorKind.KEY_ACTION_UNKNOWN: ErrorWords(
        "{file}, line {line}: there is no action named {action!r}", "kview config --keys lists the actions"
    ),
    ErrorKind.KEY_ACTION_MISSPELT: ErrorWords(
        "{file}, line {line}: there is no action named {action!r}", "did you mean {nearest}?"
    ),
    ErrorKind.KEY_UNKNOWN: ErrorWords(
        "{file}, line {line}: {action} is set to {key!r}, which is not a key",
        "write keys like s, /, ctrl+s, f5, pagedown or space",
    ),
    ErrorKind.KEYS_CONFLICT: ErrorWords(
        "{file}, line {line}: {action} and {other} both use the key {key}",
        "give one of them another key",
    ),
    ErrorKind.CHOICES_DAMAGED: ErrorWords(
        "{file} is damaged, so kview starts without the filter and sort order of your last visit",
        "kview writes the file again when you change either",
    ),
    ErrorKind.CHOICES_NOT_KEPT: ErrorWords(
        "filter, order and screen are not kept for the next visit: {file} cannot be written ({reason})",
        "check free space and permissions there",
    ),
}
