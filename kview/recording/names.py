"""The names of a recording's files, importable without the reader when only checking whether one exists."""

MANIFEST = "manifest.json"
