"""What reading a schema raises."""


class NotASchema(ValueError):
    """Raised for a text or bytes that are not a schema, or have parts that kview does not know."""


MOST_NAME = 1_000
"""Limit of the characters of a type's full name. Each type of a schema has the
namespace in its name, so a long one would take much memory."""


def full_name(name: str) -> str:
    """Return the full name of a type. Raises NotASchema if it is too long."""
    if len(name) > MOST_NAME:
        raise NotASchema
    return name
