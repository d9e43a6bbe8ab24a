"""A list that lies over the screen, which stays visible and is drawn on."""

from textual.screen import ModalScreen


class OverScreen(ModalScreen[None], inherit_bindings=False):
    """A screen over another one."""

    def leave(self) -> bool:
        """Return to the screen below. Returns False if that has been done: of two keys that come together,
        the second may choose something when the first has already left."""
        if not self.is_current:
            return False
        self.dismiss()
        return True
