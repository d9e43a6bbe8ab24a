"""Snapshots made straight from the engine of a simulated cluster, as an observer over sockets would make
them."""

from kview.school.camera.camera import Camera

__all__ = ["Camera"]
