"""A list that lies over the screen, which stays visible and is drawn on."""

from textual.screen import ModalScreen


class OverScreen(ModalScreen[None], inherit_bindings=False):
    """A screen over another one."""
