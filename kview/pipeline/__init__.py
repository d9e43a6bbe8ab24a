"""PySpark over recordings: the JVM, the session, the one-second roll-ups, the live job and its process."""
