"""Switching between profiles from the palette."""

from kview.errors import BadUse, ErrorKind
from tests.tui.harness import HEALTHY, dashboard, press, running, state, text, until


class FakeProfiles:
    """Two other profiles, of which one has a variable in its settings that is not set."""

    def __init__(self) -> None:
        self.chosen: list[str] = []

    def names(self) -> list[str]:
        """The names."""
        return ["prod", "stage"]

    def choose(self, name: str) -> None:
        """Note the choice, or fail."""
        if name == "prod":
            raise BadUse(ErrorKind.VARIABLE_NOT_SET, name="PROD_PASSWORD")
        self.chosen.append(name)


@running
async def test_the_palette_lists_the_profiles_and_ends_the_dashboard_for_the_one_chosen() -> None:
    profiles = FakeProfiles()
    async with dashboard(state(HEALTHY), profiles=profiles) as (app, pilot):
        await press(pilot, ["ctrl+p", *"connect"])
        shown = text(app)
        assert "connect prod" in shown and "connect stage" in shown
        await press(pilot, [*" stage", "enter"])
        await until(pilot, lambda: app.return_code == 0, "the end")
    assert profiles.chosen == ["stage"]


@running
async def test_a_profile_with_wrong_settings_is_said_and_the_cluster_stays_on_the_screen() -> None:
    profiles = FakeProfiles()
    async with dashboard(state(HEALTHY), profiles=profiles) as (app, pilot):
        await press(pilot, ["ctrl+p", *"connect prod", "enter"])
        said = "the environment variable PROD_PASSWORD is not set"
        await until(pilot, lambda: said in text(app), "why not")
        assert "invoice" in text(app)
        assert app.return_code is None
    assert profiles.chosen == []


@running
async def test_without_profiles_the_palette_offers_none() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        await press(pilot, ["ctrl+p", *"connect"])
        assert "nothing matches" in text(app)
