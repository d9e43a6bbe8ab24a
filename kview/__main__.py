"""`python -m kview` is the command `kview`."""

from kview.cli import main

main()
