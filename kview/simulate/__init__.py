"""A simulated Kafka cluster, built as a deterministic engine.

`cluster.build` returns a `Cluster`, which has parts. A part knows the parts below it:

    traffic       clients inside: producers, members of groups
    groups        one group coordinator per broker
    requests      what clients ask for: records, topics, admin       faults       what can happen to nodes
    brokers       processes, replicas, ISRs, replication, retention
    controllers   the quorum, the metadata, elections, sessions
    log …         what a replica stores: streams of records
    nodes         the processes of brokers and controllers
    network       whose packets arrive where
    kernel        the clock and the queue of events

What happens below is heard above through listeners: `nodes.on_process_change`, `network.on_change`,
`quorum.on_election`, `metadata.on_step`, `broker.on_metadata`. A replica uses its broker and its followers'
fetches through the protocols `Holder` and `Fetcher`, and a group coordinator its broker through `Host`.
"""
