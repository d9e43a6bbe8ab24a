"""InitProducerId (22), versions 0–5: assigns an id and an epoch to a producer.

v2 is flexible, v3 adds the producer's previous id and epoch (an idempotent producer gets a new id anyway), v4
adds PRODUCER_FENCED, v5 only adds an error.
"""

from kafka.protocol.producer import InitProducerIdRequest, InitProducerIdResponse

from kview.serve.call import Api, Call, fenced
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.codes import ErrorCode
from kview.simulate.results import ProducerIdResult

EXPECTED_FROM = 3
NO_PRODUCER, NO_EPOCH = -1, -1
FENCED_FROM = 4


def init_producer_id(call: Call) -> None:
    """Answer with an id that no other producer has, or with that of a transactional id."""
    request, version = call.request, call.version

    def done(result: ProducerIdResult) -> None:
        call.answer(
            InitProducerIdResponse(
                version=version,
                error_code=fenced(result.error_code, knows=version >= FENCED_FROM),
                producer_id=result.producer_id,
                producer_epoch=result.producer_epoch,
            )
        )

    name, write = request.transactional_id, AclOperation.WRITE
    if name is not None and not call.may(write, ResourceType.TRANSACTIONAL_ID, name):
        done(ProducerIdResult(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
        return
    if name is None and not (
        call.may(AclOperation.IDEMPOTENT_WRITE, ResourceType.CLUSTER)
        or call.may_any(write, ResourceType.TOPIC)
    ):
        done(ProducerIdResult(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
        return
    expected = (request.producer_id, request.producer_epoch) if version >= EXPECTED_FROM else (-1, -1)
    if request.transactional_id is None and (expected[0] == NO_PRODUCER) != (expected[1] == NO_EPOCH):
        done(ProducerIdResult(ErrorCode.INVALID_REQUEST))
        return
    if request.transactional_id is None:
        done(call.cluster.records.init_producer_id(call.broker))
        return
    call.cluster.transactions(call.broker).init_producer_id(
        request.transactional_id, request.transaction_timeout_ms, expected, call.later(done)
    )


APIS = (Api(22, InitProducerIdRequest, (0, 5), init_producer_id),)
