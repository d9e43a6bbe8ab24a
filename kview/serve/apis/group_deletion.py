"""DeleteGroups (42) 0–2 and OffsetDelete (47) 0: delete groups, or some of a group's committed offsets.

DeleteGroups: v2 is flexible. A group with members is not deleted, and the offsets of a topic that a member
reads are not either.
"""

from typing import Any

from kafka.protocol.admin.groups import DeleteGroupsRequest, DeleteGroupsResponse
from kafka.protocol.consumer.group import OffsetDeleteRequest, OffsetDeleteResponse

from kview.serve.apis.gather import Gather, by_topic
from kview.serve.call import Api, Call, Steps
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.codes import ErrorCode
from kview.simulate.groups.results import OffsetDeleteResult


def delete_groups(call: Call) -> Steps:
    """Delete each group, and answer once the coordinator has written it."""
    version = call.version
    gather = Gather(call, lambda rows: DeleteGroupsResponse(version=version, results=rows))
    for group in dict.fromkeys(call.request.groups_names):
        yield
        place = gather.place()

        def deleted(error: ErrorCode, place: int = place, group: str = group) -> None:
            row = DeleteGroupsResponse.DeletableGroupResult(version=version, group_id=group, error_code=error)
            gather.put(place, row)

        if call.may(AclOperation.DELETE, ResourceType.GROUP, group):
            call.cluster.groups(call.broker).delete(group, call.later(deleted))
        else:
            deleted(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    gather.close()


def delete_offsets(call: Call) -> None:
    """Delete a group's offsets of the partitions that exist, and answer the others with an error."""
    request, version, image = call.request, call.version, call.image
    asked = [(t.name, p.partition_index) for t in request.topics for p in t.partitions]
    readable = {t.name for t in request.topics if call.may(AclOperation.READ, ResourceType.TOPIC, t.name)}
    known = [key for key in asked if key[0] in readable and image.partition(*key) is not None]

    def deleted(result: OffsetDeleteResult) -> None:
        refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        codes = {key: refused for key in asked if key[0] not in readable}
        codes |= dict(zip(known, result.error_codes, strict=False))
        rows: list[tuple[str, Any]] = (
            [] if result.error_code else [(key[0], _row(codes, key)) for key in asked]
        )
        topics = [
            OffsetDeleteResponse.OffsetDeleteResponseTopic(version=version, name=name, partitions=of_topic)
            for name, of_topic in by_topic(rows).items()
        ]
        call.answer(OffsetDeleteResponse(version=version, error_code=result.error_code, topics=topics))

    if not call.may(AclOperation.DELETE, ResourceType.GROUP, request.group_id):
        deleted(OffsetDeleteResult(ErrorCode.GROUP_AUTHORIZATION_FAILED))
        return
    call.cluster.groups(call.broker).delete_offsets(request.group_id, known, call.later(deleted))


def _row(codes: dict[tuple[str, int], ErrorCode], key: tuple[str, int]) -> Any:
    return OffsetDeleteResponse.OffsetDeleteResponseTopic.OffsetDeleteResponsePartition(
        version=0,
        partition_index=key[1],
        error_code=codes.get(key, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    )


APIS = (
    Api(42, DeleteGroupsRequest, (0, 2), delete_groups),
    Api(47, OffsetDeleteRequest, (0, 0), delete_offsets),
)
