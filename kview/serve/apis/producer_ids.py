"""InitProducerId (22), versions 0–5: an id for an idempotent producer.

v2 flexible, v3 the id and epoch that the producer had (an idempotent one gets a new id all the same), v4 and
v5 new errors only. Left out on purpose: transactions; a transactional id is answered as the engine answers
it.
"""

from kafka.protocol.producer import InitProducerIdRequest, InitProducerIdResponse

from kview.serve.call import Api, Call


def init_producer_id(call: Call) -> None:
    """Answer an id that no other producer has."""
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
