"""The APIs that the simulated cluster answers, in a short file for each API or a few related ones."""

from kview.serve.call import Api


def all_apis() -> dict[int, Api]:
    """Return all APIs by their keys."""
    from kview.serve.apis import (
        api_versions,
        cluster,
        configs,
        fetch,
        find_coordinator,
        group_offsets,
        groups,
        leader_epochs,
        list_offsets,
        log_dirs,
        membership,
        metadata,
        produce,
        producer_ids,
        reassignments,
        topic_partitions,
        topics,
    )

    modules = (
        api_versions,
        cluster,
        configs,
        fetch,
        find_coordinator,
        group_offsets,
        groups,
        leader_epochs,
        list_offsets,
        log_dirs,
        membership,
        metadata,
        produce,
        producer_ids,
        reassignments,
        topic_partitions,
        topics,
    )
    apis = {api.key: api for module in modules for api in module.APIS}
    apis[api_versions.KEY] = api_versions.api(apis)
    return dict(sorted(apis.items()))
