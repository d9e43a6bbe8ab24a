"""All of teaching: lessons, drills and the tour, whether a cluster does what they say, and how they are
shown."""
