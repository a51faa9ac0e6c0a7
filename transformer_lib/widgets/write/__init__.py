from transformer_lib.widgets.write.widget import Write

__all__ = ["Write"]
