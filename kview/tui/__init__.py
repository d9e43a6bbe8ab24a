"""The screen. This room only draws views."""
