from transformer_lib.widgets.position_lab.widget import PositionLab

__all__ = ["PositionLab"]
