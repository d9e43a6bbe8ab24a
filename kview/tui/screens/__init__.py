"""The screens: which panels stand where, and what their keys do."""
