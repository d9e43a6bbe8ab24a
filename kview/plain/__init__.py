"""Views without a terminal: blocks of text and JSON documents."""
