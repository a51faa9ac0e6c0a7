"""See :mod:`transformer_lib.widgets.embedding_map.widget`."""

from transformer_lib.widgets.embedding_map.widget import EmbeddingMap

__all__ = ["EmbeddingMap"]
