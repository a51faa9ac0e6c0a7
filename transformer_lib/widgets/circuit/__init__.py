from transformer_lib.widgets.circuit.widget import Circuit

__all__ = ["Circuit"]
