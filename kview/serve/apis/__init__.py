"""The APIs that the simulated cluster answers, in a short file for each API or a few related ones.

A file registers its APIs itself, with their keys, versions and handlers, in a tuple named `APIS`. To add an
API, write its file and name the file in `FILES`.
"""

from dataclasses import replace
from importlib import import_module

from kview.serve.call import Api
from kview.simulate.releases import KAFKA_4_3, Release

FILES = (
    "acls",
    "api_versions",
    "cluster",
    "configs",
    "consumer_groups",
    "delegation_tokens",
    "features",
    "fetch",
    "find_coordinator",
    "group_deletion",
    "group_offsets",
    "groups",
    "leader_epochs",
    "list_offsets",
    "log_dirs",
    "membership",
    "metadata",
    "nodes",
    "partitions",
    "produce",
    "producer_ids",
    "quotas",
    "reassignments",
    "records",
    "sasl",
    "scram_users",
    "share_fetch",
    "share_groups",
    "share_offsets",
    "share_state",
    "streams_groups",
    "topic_partitions",
    "topics",
    "transactions",
    "transactions_described",
)
"""The files of this package that have `APIS`. Handlers are imported only when the cluster is served."""


def all_apis(release: Release = KAFKA_4_3) -> dict[int, Api]:
    """Return all supported APIs by their API keys, in order, with the versions that a release has."""
    registered: list[Api] = [api for file in FILES for api in import_module(f"{__name__}.{file}").APIS]
    apis = {api.key: api for api in sorted(registered, key=lambda api: api.key)}
    if release.last_versions is None:
        return apis
    return {
        key: replace(apis[key], versions=(apis[key].versions[0], last))
        for key, last in release.last_versions.items()
    }
