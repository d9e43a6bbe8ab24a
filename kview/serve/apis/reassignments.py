"""ListPartitionReassignments (46), version 0.

The list is always empty, because the simulated cluster does not move replicas.
"""

from kafka.protocol.admin import ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse

from kview.serve.call import Api, Call


def list_reassignments(call: Call) -> None:
    """Answer that nothing is being reassigned."""
    call.answer(ListPartitionReassignmentsResponse(version=call.version, error_message=None, topics=[]))


APIS = (Api(46, ListPartitionReassignmentsRequest, (0, 0), list_reassignments),)
