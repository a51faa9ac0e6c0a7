from transformer_lib.widgets.rotary_arrows.widget import RotaryArrows

__all__ = ["RotaryArrows"]
