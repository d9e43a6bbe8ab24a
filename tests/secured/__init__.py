"""Clusters behind TLS and logins: what kview sees there, and what it says if it cannot get in."""
