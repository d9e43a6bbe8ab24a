"""ApiVersions (18), asked again and again: an answer that says what the last one said is not decoded."""

from typing import Any

from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse

from kview.wire.kafka_internals import Message


def request(version: int, name: str, software: str) -> Message[Any]:
    """Build a request of the client `name`, version `software`, which can be sent many times. Its answer is
    kafka-python's, the same object as long as the bytes are the same."""
    body = ApiVersionsRequest(version=version, client_software_name=name, client_software_version=software)
    last: tuple[bytes, Any] = (b"", None)

    def decode(data: memoryview) -> Any:
        nonlocal last
        if data != last[0]:
            last = (bytes(data), ApiVersionsResponse[version].decode(data))
        return last[1]

    flexible = bool(ApiVersionsRequest.flexible_version_q(version))
    return Message(ApiVersionsRequest.API_KEY, version, flexible, body.encode(), decode, plain_answer=True)
