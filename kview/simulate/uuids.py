"""UUIDs as Kafka makes them and writes them, in base64.

Source: org.apache.kafka.common.Uuid.
"""

from base64 import urlsafe_b64encode
from random import Random

_DASH = 62
"""What a dash stands for in base64."""


def without_dash(raw: bytes) -> bytes:
    """Return the 16 random bytes of a UUID, changed if it would begin with a dash: Kafka draws such a UUID
    again, because a command would take it for an option."""
    return bytes((raw[0] & 0x7F if raw[0] >> 2 == _DASH else raw[0],)) + raw[1:]


def random_uuid(random: Random) -> bytes:
    """Return 16 random bytes."""
    return without_dash(random.getrandbits(128).to_bytes(16, "big"))


def random_id(random: Random) -> str:
    """Return a random UUID of version 4 as Java writes it, which ends the ids of members."""
    digits = f"{random.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def in_base64(uuid: bytes) -> str:
    """Return a UUID as Kafka's tools and messages have it."""
    return urlsafe_b64encode(uuid).decode().rstrip("=")
