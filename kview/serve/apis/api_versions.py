"""ApiVersions (18), versions 0–4: lists the supported APIs and their versions.

v1 adds the throttle time. v3 is flexible and adds the client's name, but the response header never is
flexible, so that an older client can read it. v4 changes what a feature's minimum may be. A request with a
later version is answered in version 0, with error 35 and the full list. Left out on purpose: features, which
only transactional clients and feature upgrades use.
"""

from collections.abc import Mapping
from typing import Any

from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse

from kview.serve.call import Api, Call
from kview.simulate.codes import ErrorCode

KEY = 18
APIS: tuple[Api, ...] = ()
"""Empty, because ApiVersions lists the other APIs, so `api` creates it after them."""


def api(others: Mapping[int, Api]) -> Api:
    """Return ApiVersions itself, which advertises `others` and itself."""

    def handle(call: Call) -> None:
        call.answer(_response(call.version, ErrorCode.NONE, everything))

    own = Api(KEY, ApiVersionsRequest, (0, 4), handle, plain_header=True)
    everything = tuple(sorted((*others.values(), own), key=lambda api: api.key))
    return own


def answer_unsupported(call: Call, apis: Mapping[int, Api]) -> None:
    """Answer a request whose version is too new.

    The response is in version 0, with UNSUPPORTED_VERSION and the full list.
    """
    response = _response(0, ErrorCode.UNSUPPORTED_VERSION, tuple(apis.values()))
    call.answer_packed((response.encode(version=0),))


def _response(version: int, error: ErrorCode, apis: tuple[Api, ...]) -> Any:
    entry = ApiVersionsResponse.ApiVersion
    keys = [
        entry(
            version=version,
            api_key=api.key,
            min_version=api.versions[0] if api.advertised_from is None else api.advertised_from,
            max_version=api.versions[1],
        )
        for api in apis
    ]
    return ApiVersionsResponse(version=version, error_code=error, api_keys=keys)
