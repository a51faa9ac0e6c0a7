"""See :mod:`transformer_lib.widgets.architecture_walk.widget`."""

from transformer_lib.widgets.architecture_walk.widget import ArchitectureWalk

__all__ = ["ArchitectureWalk"]
