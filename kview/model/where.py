"""What a filter of records says, as a tree, what can be wrong with one, and what it judges."""

from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from kview.model.decoded import NOT_DECODED, DecodedRecord
from kview.model.inspection import Record
from kview.model.units import UNKNOWN


class Subject(StrEnum):
    """What a condition is about."""

    KEY = "key"
    VALUE = "value"
    HEADERS = "headers"
    OFFSET = "offset"
    PARTITION = "partition"
    TIMESTAMP = "timestamp"
    SIZE = "size"
    """The bytes of a record's key, value and headers."""
    ANYWHERE = ""
    """The text of the key, the value or a header."""


NUMBERS = frozenset({Subject.OFFSET, Subject.PARTITION, Subject.TIMESTAMP, Subject.SIZE})


class Operator(StrEnum):
    """What a condition asks."""

    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_EQUAL = "<="
    MORE = ">"
    MORE_EQUAL = ">="
    MATCHES = "~"
    CONTAINS = "contains"
    EXISTS = "exists"


ORDERS = frozenset({Operator.LESS, Operator.LESS_EQUAL, Operator.MORE, Operator.MORE_EQUAL})

EVERY = -1
"""The step to every item of an array: `[]`."""
Step = str | int
"""A step down: a name, the number of an item, or EVERY."""


class Field(Struct, frozen=True):
    """What a condition looks at. `path` leads into a key or a value; of HEADERS, it is a header's name."""

    subject: Subject
    path: tuple[Step, ...] = ()


class Literal(Struct, frozen=True):
    """What a field is compared with: a text, and whatever else the same writing stands for.

    What is in quotes is a text alone.
    """

    text: str
    number: int | Decimal | None = None
    boolean: bool | None = None
    null: bool = False
    time_ms: int = UNKNOWN
    """The time that it names, in epoch ms."""
    data: bytes | None = None
    """The bytes that it names as `0x00ff`."""


class Condition(Struct, frozen=True):
    """A condition. EXISTS has no literal, and that of MATCHES is an expression of RE2."""

    field: Field
    operator: Operator
    literal: Literal = Literal("")


class Not(Struct, frozen=True):
    """Holds where `part` does not."""

    part: "Where"


class And(Struct, frozen=True):
    """Holds where all parts do. There are two or more."""

    parts: tuple["Where", ...]


class Or(Struct, frozen=True):
    """Holds where one of the parts does. There are two or more."""

    parts: tuple["Where", ...]


Where = Condition | Not | And | Or
"""A filter of records."""


class Mistake(StrEnum):
    """What is wrong with a filter's text."""

    EMPTY = "empty"
    TOO_LONG = "too_long"
    TOO_MANY = "too_many"
    """It has too many conditions."""
    TOO_DEEP = "too_deep"
    """Brackets, `not` or a field's path are nested too deep."""
    UNKNOWN_FIELD = "unknown_field"
    NO_PATH = "no_path"
    """A path follows a field that has none, such as `offset.x`, or a name is missing in it."""
    NO_VALUE = "no_value"
    """Nothing follows an operator."""
    NOT_A_NUMBER = "not_a_number"
    NOT_ORDERED = "not_ordered"
    """It is compared by size, but is neither a number nor a time."""
    NOT_FOR_FIELD = "not_for_field"
    """The operator does not go with the field."""
    BAD_PATTERN = "bad_pattern"
    OPEN_QUOTE = "open_quote"
    OPEN_BRACKET = "open_bracket"
    NO_BRACKET = "no_bracket"
    """A `)` that nothing opens."""
    NO_CONDITION = "no_condition"
    """A condition is missing, such as after `and`."""
    NOT_JOINED = "not_joined"
    """A condition follows another one without `and` or `or`."""


class Problem(Struct, frozen=True):
    """Why a text is not a filter. `at` is a position in it, from 0, and `wrong` what stands there or why."""

    mistake: Mistake
    at: int = 0
    wrong: str = ""


class Candidate(NamedTuple):
    """A record of a partition, with what its schemas made of it."""

    partition: int
    record: Record
    decoded: DecodedRecord = NOT_DECODED
