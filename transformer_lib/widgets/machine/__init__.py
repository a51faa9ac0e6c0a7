from transformer_lib.widgets.machine.widget import Machine

__all__ = ["Machine"]
