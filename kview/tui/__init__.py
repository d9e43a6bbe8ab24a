"""The screen. This room only draws views."""

import os

os.environ.setdefault("TEXTUAL_FPS", "120")
# Textual reads this when it is imported. With its usual 60, what follows a key in a second frame, such as the
# rows that pass a filter, waits up to 33 ms longer. Frames are painted only when something has changed.
