"""The controller's side of UpdateFeatures. Source: org.apache.kafka.controller.FeatureControlManager."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kview.simulate.codes import ErrorCode
from kview.simulate.controllers.metadata_log import MetadataLog
from kview.simulate.controllers.quorum import Quorum
from kview.simulate.features import KRAFT_VERSION, METADATA_VERSION
from kview.simulate.results import AdminResult

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
FAILED = "The update failed for all features since the following feature had an error: "


class FeatureUpdate(NamedTuple):
    """A feature, its new level, and whether that may be lower than before. The last is any number."""

    name: str
    level: int
    kind: int


class FeatureUpdates:
    """Changes the levels of features, which are part of the metadata. `supported` has all that there are."""

    def __init__(
        self, metadata: MetadataLog, quorum: Quorum, supported: Mapping[str, tuple[int, int]]
    ) -> None:
        self._supported = supported
        self._metadata = metadata
        self._quorum = quorum

    def update(self, updates: Sequence[FeatureUpdate], validate_only: bool) -> AdminResult:
        """Set all levels in one step, or none of them if one is wrong."""
        known = self._metadata.image.features
        after = dict(known)
        for update in {each.name: each for each in updates}.values():
            wrong = self._wrong(update, known.get(update.name, 0))
            if wrong is not None:
                return AdminResult(ErrorCode.INVALID_UPDATE_VERSION, FAILED + wrong)
            after[update.name] = update.level
        after = {name: level for name, level in after.items() if level}
        if after != known and not validate_only:
            self._metadata.commit({}, features=after)
        return AdminResult(ErrorCode.NONE)

    def _wrong(self, update: FeatureUpdate, now: int) -> str | None:
        name, level, kind = update
        wrong = self._wrong_level(update, now)
        if wrong is not None:
            return f"Invalid update version {level} for feature {name}. {wrong}"
        if name == METADATA_VERSION and level < now:
            wrong = (
                "Refusing to perform the requested downgrade because it might delete metadata information."
            )
            if kind == UNSAFE_DOWNGRADE:
                wrong = "Unsafe metadata downgrade is not supported in this version."
            return f"Unsupported metadata.version downgrade from {now} to {level}. {wrong}"
        return None

    def _wrong_level(self, update: FeatureUpdate, now: int) -> str | None:
        name, level, kind = update
        if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
            return "The controller does not support the given upgrade type."
        if level < 0:
            return "A feature version cannot be less than 0."
        local = f"Local controller {self._quorum.leader}"
        if name not in self._supported and level == 0:
            return f"Feature {name} not found."
        if name not in self._supported:
            return f"{local} does not support this feature."
        low, high = self._supported[name]
        if not low <= level <= high:
            return f"{local} only supports versions {low}-{high}"
        if level < now and kind == UPGRADE:
            lower = (
                "Can't downgrade the version of this feature without setting the upgrade type to either safe"
            )
            return f"{lower} or unsafe downgrade."
        if level > now and kind != UPGRADE:
            return "Can't downgrade to a newer version."
        if level < now and name == KRAFT_VERSION:
            return "Can't downgrade the version of this feature."
        return None
