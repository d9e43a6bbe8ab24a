"""InitProducerId (22), versions 0–5: assigns an id to an idempotent producer.

v2 is flexible, v3 adds the producer's previous id and epoch (an idempotent producer gets a new id anyway), v4
and v5 only add errors. Left out on purpose: transactions (INVALID_REQUEST).
"""

from kafka.protocol.producer import InitProducerIdRequest, InitProducerIdResponse

from kview.serve.call import Api, Call
from kview.simulate.codes import ErrorCode
from kview.simulate.results import ProducerIdResult


def init_producer_id(call: Call) -> None:
    """Answer with an id that no other producer has."""
    if call.request.transactional_id is None:
        result = call.cluster.records.init_producer_id(call.broker)
    else:
        result = ProducerIdResult(ErrorCode.INVALID_REQUEST)
    call.answer(
        InitProducerIdResponse(
            version=call.version,
            error_code=result.error_code,
            producer_id=result.producer_id,
            producer_epoch=result.producer_epoch,
        )
    )


APIS = (Api(22, InitProducerIdRequest, (0, 5), init_producer_id),)
