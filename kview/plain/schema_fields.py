"""The meanings and units of the fields of JSON documents, and the fields that several structs have."""

from typing import Annotated

from msgspec import Meta, Struct

from kview.model.events import Severity
from kview.model.failures import FailureKind


def meaning(description: str, unit: str | None = None) -> Meta:
    """Return the meaning of a field, and its unit if it has one."""
    return Meta(description=description, extra_json_schema={"unit": unit} if unit else None)


def moment(description: str) -> Meta:
    """Return the meaning of a time, in ms since the epoch."""
    return meaning(description, "milliseconds since 1970-01-01T00:00:00Z")


def duration(description: str) -> Meta:
    """Return the meaning of a duration, in ms."""
    return meaning(description, "milliseconds")


def rate(description: str) -> Meta:
    """Return the meaning of a rate, in records per second."""
    return meaning(description, "records per second")


def records(description: str) -> Meta:
    """Return the meaning of a number of records."""
    return meaning(description, "records")


def in_partitions(description: str) -> Meta:
    """Return the meaning of a number of partitions."""
    return meaning(description, "partitions")


CLUSTER = "The name of the cluster, as it was given. It is there only if kview was given several."

Text = Annotated[
    str, meaning("The same in words, as on the screen. The wording may change: do not parse it.")
]
HowBad = Annotated[Severity, meaning("Severity.")]


class PartitionName(Struct, gc=False):
    """A partition."""

    topic: Annotated[str, meaning("The topic's name.")]
    partition: Annotated[int, meaning("The partition's number.")]


class Cause(Struct, gc=False):
    """Why something was not answered."""

    kind: Annotated[FailureKind, meaning("What went wrong.")]
    code: Annotated[
        int | None, meaning("Kafka's error number, if the kind is kafka_error; for http_status, the status.")
    ]
    text: Text
