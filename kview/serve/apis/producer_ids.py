"""InitProducerId (22), versions 0–5: assigns an id to an idempotent producer.

v2 is flexible, v3 adds the producer's previous id and epoch (an idempotent producer gets a new id anyway), v4
and v5 only add errors. Left out on purpose: transactions. The result for a transactional id comes from the
engine.
"""

from kafka.protocol.producer import InitProducerIdRequest, InitProducerIdResponse

from kview.serve.call import Api, Call


def init_producer_id(call: Call) -> None:
    """Answer with an id that no other producer has."""
    result = call.cluster.init_producer_id(call.broker, call.request.transactional_id)
    call.answer(
        InitProducerIdResponse(
            version=call.version,
            error_code=result.error_code,
            producer_id=result.producer_id,
            producer_epoch=result.producer_epoch,
        )
    )


APIS = (Api(22, InitProducerIdRequest, (0, 5), init_producer_id),)
