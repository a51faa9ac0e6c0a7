from transformer_lib.widgets.mask_painter.widget import MaskPainter

__all__ = ["MaskPainter"]
