"""Groups of the consumer protocol (KIP-848)."""

from typing import Any

from kview.observe.groups.members import GroupDescription, MemberFacts, count_of, of_epochs, topics_of, who


def read_consumer(entry: Any) -> GroupDescription:
    """Read a group of the consumer protocol (KIP-848), from ConsumerGroupDescribe."""
    members = []
    for member in entry.members:
        owned, target = topics_of(member.assignment), topics_of(member.target_assignment)
        at = member.rack_id or "", member.member_epoch
        members.append(MemberFacts(*who(member), owned, *at, count_of(owned), count_of(target)))
    return of_epochs(entry, members)
