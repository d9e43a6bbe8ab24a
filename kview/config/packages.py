"""Python packages that only some SASL mechanisms need."""

from collections.abc import Mapping
from importlib.util import find_spec

from kview.config.security import Mechanism
from kview.errors import BadUse, ErrorKind

PACKAGES: Mapping[Mechanism, str] = {Mechanism.GSSAPI: "gssapi", Mechanism.AWS_MSK_IAM: "botocore"}
"""The package that kafka-python needs for a mechanism."""


def check_package(mechanism: Mechanism) -> None:
    """Raise BadUse if the mechanism needs a package that is not installed."""
    package = PACKAGES.get(mechanism)
    if package is not None and find_spec(package) is None:
        raise BadUse(ErrorKind.PACKAGE_MISSING, mechanism=mechanism.value, package=package)
