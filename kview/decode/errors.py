"""What reading a schema raises."""


class NotASchema(ValueError):
    """Raised for a text or bytes that are not a schema, or have parts that kview does not know."""
