"""UpdateFeatures (57), versions 0–2: sets the levels of features, which ApiVersions lists.

v1 adds the kind of change and a check without it, v2 has no results of single features. The controller
carries it out, for all features of a request or for none; that of Kafka 3.9 does it for each feature.
"""

from kafka.protocol.admin.cluster import UpdateFeaturesRequest, UpdateFeaturesResponse

from kview.serve.apis.gather import forward, message_of
from kview.serve.call import Api, Call
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.codes import MESSAGES, ErrorCode
from kview.simulate.requests.admin import NO_CONTROLLER
from kview.simulate.requests.feature_updates import UPGRADE, FeatureResults, FeatureUpdate
from kview.simulate.results import AdminResult

KINDS_FROM, NO_RESULTS_FROM = 1, 2


def update_features(call: Call) -> None:
    """Change levels, and answer once the controller has decided."""
    request, version = call.request, call.version
    updates = [
        FeatureUpdate(
            each.feature, each.max_version_level, each.upgrade_type if version >= KINDS_FROM else UPGRADE
        )
        for each in request.feature_updates
    ]
    validate_only = version >= KINDS_FROM and bool(request.validate_only)

    def done(results: FeatureResults) -> None:
        per_feature, result = UpdateFeaturesResponse.UpdatableFeatureResult, results.result
        rows = [
            per_feature(version=version, feature=name, error_code=row.error_code, error_message=row.message)
            for name, row in results.rows
            if version < NO_RESULTS_FROM
        ]
        call.answer(
            UpdateFeaturesResponse(
                version=version,
                error_code=result.error_code,
                error_message=message_of(result),
                **({"results": rows} if version < NO_RESULTS_FROM else {}),
            )
        )

    if not call.may(AclOperation.ALTER, ResourceType.CLUSTER):
        refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        done(FeatureResults(AdminResult(refused, MESSAGES[refused]), []))
        return
    late = FeatureResults(NO_CONTROLLER, [])
    forward(call, lambda: call.cluster.features.update(updates, validate_only), late, done)


APIS = (Api(57, UpdateFeaturesRequest, (0, 2), update_features),)
