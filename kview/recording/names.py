"""Names of a recording's files, for those who only look whether there is one: no import of what reads it."""

MANIFEST = "manifest.json"
