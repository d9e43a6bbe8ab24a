"""Shows views without a terminal: as blocks of text and as JSON documents."""
