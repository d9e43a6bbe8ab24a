"""ApiVersions (18), versions 0–4: lists the supported APIs and their versions.

v1 adds the throttle time. v3 is flexible and adds the client's name, but the response header is never
flexible, so that older clients can read it. v4 allows a feature's minimum version to be 0. A request with a
later version is answered in version 0, with error 35 and the full list. Features tell clients that there are
consumer groups (KIP-848) and share groups (KIP-932), and transactional ones that they get a new epoch with
each transaction (KIP-890). UpdateFeatures changes them. A client whose name or version is not made of
letters, digits, '.' and '-' is refused (KIP-511).
"""

import re
from collections.abc import Iterable
from typing import Any

from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse

from kview.serve.call import Api, Call
from kview.serve.login import Stage
from kview.simulate.codes import ErrorCode

FEATURES_FROM = 3
ANY_LEVEL_FROM = 4
"""The first version that lists supported features whose lowest level is 0."""
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def api_versions(call: Call) -> None:
    """Answer with all APIs that this broker has registered."""
    request, version = call.request, call.version
    software = (request.client_software_name, request.client_software_version)
    if version >= FEATURES_FROM and not all(map(_SOFTWARE.fullmatch, software)):
        call.answer(ApiVersionsResponse(version=version, error_code=ErrorCode.INVALID_REQUEST, api_keys=[]))
        return
    if call.login is not None and call.login.stage is Stage.TOKENS:
        call.refuse_login(call.login, _response(call, ErrorCode.ILLEGAL_SASL_STATE, ()))
        return
    if call.login is not None:
        call.login.versions_told()
    call.answer(_response(call, ErrorCode.NONE, call.wire.apis.values()))


def answer_unsupported(call: Call) -> None:
    """Answer a request whose version is too new.

    The response is in version 0, with UNSUPPORTED_VERSION and the full list.
    """
    call.version = 0
    if call.login is not None and call.login.stage is Stage.TOKENS:
        call.refuse_login(call.login, _response(call, ErrorCode.ILLEGAL_SASL_STATE, ()))
        return
    response = _response(call, ErrorCode.UNSUPPORTED_VERSION, call.wire.apis.values())
    call.answer_packed((response.encode(version=0),))


def _response(call: Call, error: ErrorCode, apis: Iterable[Api]) -> Any:
    entry, version = ApiVersionsResponse.ApiVersion, call.version
    keys = [
        entry(
            version=version,
            api_key=api.key,
            min_version=api.versions[0] if api.advertised_from is None else api.advertised_from,
            max_version=api.versions[1],
        )
        for api in apis
    ]
    features: dict[str, Any] = {}
    if version >= FEATURES_FROM:
        supported, finalized = (
            ApiVersionsResponse.SupportedFeatureKey,
            ApiVersionsResponse.FinalizedFeatureKey,
        )
        features = {
            "supported_features": [
                supported(version=version, name=name, min_version=low, max_version=high)
                for name, (low, high) in call.cluster.world.release.features.items()
                if low or version >= ANY_LEVEL_FROM
            ],
            "finalized_features_epoch": call.image.offset,
            "finalized_features": [
                finalized(version=version, name=name, max_version_level=level, min_version_level=level)
                for name, level in call.image.features.items()
            ],
        }
    return ApiVersionsResponse(version=version, error_code=error, api_keys=keys, **features)


APIS = (Api(18, ApiVersionsRequest, (0, 4), api_versions, unsupported=answer_unsupported, plain_header=True),)
