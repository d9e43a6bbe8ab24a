"""Groups of every kind: who coordinates them, what is asked, and what the answers say."""
