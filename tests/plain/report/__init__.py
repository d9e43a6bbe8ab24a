"""Reports as text, page and files."""
