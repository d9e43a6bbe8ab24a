"""What Kafka says about an error code, where it has nothing more precise to say.

Source: org.apache.kafka.common.protocol.Errors.
"""

from collections.abc import Mapping

from kview.simulate.codes import ErrorCode

MESSAGES: Mapping[ErrorCode, str] = {
    ErrorCode.NONE: "NONE",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.INVALID_REQUEST: (
        "This most likely occurs because of a request being malformed by the client library or the message "
        "was sent to an incompatible broker. See the broker logs for more details."
    ),
    ErrorCode.UNKNOWN_TOPIC_ID: "This server does not host this topic ID.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
}
