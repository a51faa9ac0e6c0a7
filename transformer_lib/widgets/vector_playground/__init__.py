from transformer_lib.widgets.vector_playground.widget import VectorPlayground

__all__ = ["VectorPlayground"]
