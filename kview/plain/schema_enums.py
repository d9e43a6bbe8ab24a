"""What the sets of words in JSON documents mean, for readers of the published schema."""

from collections.abc import Mapping

ENUMS: Mapping[str, str] = {
    "Severity": "How urgent an event, a finding or a verdict is. risk: data or availability is at risk now."
    " warn: one step away from that. good: something recovered. calm: no concern.",
    "FindingKind": "What is found about the cluster or its clients now.",
    "Verdict": "What a group, or a group's partition, is doing, judged from offsets, members and the"
    " partition's state.",
    "FailureKind": "Why a request was not answered. The empty string means no failure.",
    "BrokerState": "What is known about a broker from outside. up: the metadata lists it, and it answers."
    " starting: the metadata lists it, but it has not answered kview yet; after a few seconds without an"
    " answer it is silent. silent: the metadata lists it, but it does not answer kview. fenced: the"
    " controller has taken away its leaderships; `answers` says whether it still answers kview. gone: the"
    " metadata no longer lists it; it stays in the list until the user removes it.",
    "ControllerState": "What a node of the quorum does. active: it leads. follows: it votes and fetches."
    " observes: it fetches without a vote. lost: it has not fetched for longer than one that lives. unknown:"
    " nobody can tell, because no controller answers, or the active one has not heard from it (yet).",
    "PartitionStatus": "The worst thing that is true of a partition.",
    "Reason": "Why a verdict is what it is; `reason_ms` and `reason_count` are its numbers.",
    "EventKind": "What happened to the cluster or its clients, as seen from outside.",
    "IncidentKind": "What an incident began with.",
    "PhaseKind": "A stage of an incident.",
    "Level": "How bad a finding of `kview check` is. risk: data or availability is at risk now. warn: one"
    " step away from that. weakness: nothing is wrong now, but the next failure would do more harm than it"
    " must, or work is spread unevenly. Of some kinds, every finding is a weakness, of the others none.",
    "CheckKind": "What `kview check` judges.",
    "NotJudgedWhy": "Why something could not be judged. no_history: it needs more observations."
    " no_comparison: brokers take long to answer, and kview does not know how long they usually take."
    " rack_unknown: some brokers have a rack, and others have none.",
    "Part": "A part of an observation, named after what its requests ask for.",
}
"""The description of each enumeration, by its name in the schema's `$defs`."""
