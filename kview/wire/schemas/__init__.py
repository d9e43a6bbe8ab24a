"""Messages of Kafka's protocol that kafka-python has no schema for, in its form of Kafka's own schemas."""

from types import new_class
from typing import Any

from kafka.protocol.api_message import ApiMessage


def message(name: str) -> Any:
    """Return kafka-python's class of the message in this package that has this name."""
    return new_class(name, (ApiMessage,), {"load_json": __name__})
