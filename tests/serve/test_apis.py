"""How APIs are registered: each by its own file, which is all that a broker and its ApiVersions need."""

from importlib import import_module
from pkgutil import iter_modules

from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse

from kview.serve import apis
from kview.serve.apis.metadata import APIS as METADATA
from kview.serve.call import Api
from tests.serve.unwired import Unwired, UnwiredClient
from tests.simulate.engine import cluster_of


def test_every_file_with_apis_is_in_the_list_and_no_key_is_registered_twice() -> None:
    files = {
        module.name: import_module(f"{apis.__name__}.{module.name}") for module in iter_modules(apis.__path__)
    }
    with_apis = [name for name, module in files.items() if hasattr(module, "APIS")]
    assert sorted(apis.FILES) == sorted(with_apis)
    registered: list[Api] = [api for name in with_apis for api in files[name].APIS]
    assert sorted(apis.all_apis()) == sorted(api.key for api in registered)


def advertised(wire: Unwired, version: int) -> dict[int, tuple[int, int]]:
    client = UnwiredClient(0)
    wire.ask(
        client, ApiVersionsRequest(version=version, client_software_name="t", client_software_version="1")
    )
    (answer,) = client.answers
    assert answer is not None
    keys = ApiVersionsResponse.decode(answer[8:], version=version).api_keys
    return {key.api_key: (key.min_version, key.max_version) for key in keys}


def test_what_is_registered_is_advertised_and_answered_and_nothing_else() -> None:
    all_apis = apis.all_apis()
    wire = Unwired(cluster_of(), {18: all_apis[18], 3: METADATA[0]})
    assert advertised(wire, 0) == advertised(wire, 3) == {3: (0, 13), 18: (0, 4)}
    client = UnwiredClient(0)
    unknown = all_apis[19].request(version=2, topics=[], timeout_ms=1, validate_only=False)
    wire.ask(client, unknown)
    assert client.closed and client.answers == []
