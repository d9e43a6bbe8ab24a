"""What reading a schema raises."""


class NotASchema(ValueError):
    """Raised for a text or bytes that are not a schema, or have parts that kview does not know."""


MOST_NAME = 1_000
"""Limit of the characters of a type's full name. A schema's types repeat its namespace: a long one would take memory
for each of them."""


def full_name(name: str) -> str:
    """Return the full name of a type. Raises NotASchema if it is too long."""
    if len(name) > MOST_NAME:
        raise NotASchema
    return name
