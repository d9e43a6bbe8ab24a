"""Views with one part that cannot be read, as a bug in `derive` would make them."""

from typing import Any, NoReturn

from msgspec.structs import replace

from kview.derive.view import View


class Broken:
    """Raises an exception whenever it is used."""

    def __init__(self, why: str = "a bug") -> None:
        self._why = why

    def __getattr__(self, name: str) -> NoReturn:
        raise RuntimeError(f"{self._why} in {name}")

    def __bool__(self) -> NoReturn:
        raise RuntimeError(self._why)


def without(view: View, part: str, why: str = "a bug") -> View:
    """The view with that part broken."""
    broken: dict[str, Any] = {part: Broken(why)}
    return replace(view, **broken)
