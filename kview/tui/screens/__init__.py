"""The screens: the position of their panels, and what their keys do."""
