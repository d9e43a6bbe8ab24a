"""The controller's side of UpdateFeatures. Source: org.apache.kafka.controller.FeatureControlManager."""

from collections.abc import Sequence
from typing import NamedTuple

from kview.simulate.codes import MESSAGES, ErrorCode
from kview.simulate.controllers.metadata_log import MetadataLog
from kview.simulate.controllers.quorum import Quorum
from kview.simulate.features import KRAFT_VERSION, METADATA_VERSION
from kview.simulate.releases import Release
from kview.simulate.results import AdminResult

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
STORED_FROM, STORED_FROM_NAME = 4, "3.3-IV0"
"""The lowest metadata.version that clusters store, and its name."""
FAILED = "The update failed for all features since the following feature had an error: "


class FeatureUpdate(NamedTuple):
    """A feature, its new level, and whether that may be lower than before. The last is any number."""

    name: str
    level: int
    kind: int


class FeatureResults(NamedTuple):
    """The result of a request, and that of each feature, if it has any."""

    result: AdminResult
    rows: Sequence[tuple[str, AdminResult]]


class FeatureUpdates:
    """Changes the levels of features, which are part of the metadata."""

    def __init__(self, metadata: MetadataLog, quorum: Quorum, release: Release) -> None:
        self._release = release
        self._metadata = metadata
        self._quorum = quorum

    def update(self, updates: Sequence[FeatureUpdate], validate_only: bool) -> FeatureResults:
        """Set all levels in one step, or none of them if one is wrong. Before KIP-1022, set those that are
        right, except kraft.version, which the controller does not know and cannot change."""
        image, together = self._metadata.image, self._release.features_together
        fixed = {} if together else {n: level for n, level in image.features.items() if n == KRAFT_VERSION}
        known = {name: level for name, level in image.features.items() if name not in fixed}
        after, rows = dict(known), []
        for update in {each.name: each for each in updates}.values():
            wrong = self._wrong(update, known.get(update.name, 0))
            if wrong is not None and together:
                return FeatureResults(AdminResult(ErrorCode.INVALID_UPDATE_VERSION, FAILED + wrong), [])
            if wrong is None:
                after[update.name] = update.level
            code = ErrorCode.NONE if wrong is None else ErrorCode.INVALID_UPDATE_VERSION
            rows.append((update.name, AdminResult(code, MESSAGES[code] if together else wrong)))
        after = fixed | {name: level for name, level in after.items() if level and name not in fixed}
        if after != image.features and not validate_only:
            self._metadata.commit({}, features=after)
        return FeatureResults(AdminResult(ErrorCode.NONE, None if together else ""), rows)

    def _wrong(self, update: FeatureUpdate, now: int) -> str | None:
        name, level, kind = update
        wrong = self._wrong_level(update, now)
        if wrong is not None:
            return f"Invalid update version {level} for feature {name}. {wrong}"
        if name == METADATA_VERSION and level < min(now, self._release.lossless_from):
            wrong = (
                "Refusing to perform the requested downgrade because it might delete metadata information."
            )
            if kind == UNSAFE_DOWNGRADE:
                wrong = "Unsafe metadata downgrade is not supported in this version."
            if not self._release.features_together:
                if level < STORED_FROM:
                    wrong = f"Unable to set a metadata.version less than {STORED_FROM_NAME}"
                return f"Invalid metadata.version {level}. {wrong}"
            return f"Unsupported metadata.version downgrade from {now} to {level}. {wrong}"
        return None

    def _wrong_level(self, update: FeatureUpdate, now: int) -> str | None:
        name, level, kind = update
        if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
            return "The controller does not support the given upgrade type."
        if level < 0:
            return "A feature version cannot be less than 0."
        local = f"Local controller {self._quorum.leader}"
        if name not in self._release.features and level == 0:
            return f"Feature {name} not found." if self._release.features_together else None
        if name not in self._release.features:
            return f"{local} does not support this feature."
        low, high = self._release.features[name]
        if not low <= level <= high:
            return f"{local} only supports versions {low}-{high}"
        if level < now and kind == UPGRADE:
            lower = (
                "Can't downgrade the version of this feature without setting the upgrade type to either safe"
            )
            return f"{lower} or unsafe downgrade."
        if level > now and kind != UPGRADE:
            return "Can't downgrade to a newer version."
        if level < now and name == KRAFT_VERSION and self._release.features_together:
            return "Can't downgrade the version of this feature."
        return None
