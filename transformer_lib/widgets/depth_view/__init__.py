from transformer_lib.widgets.depth_view.widget import DepthView

__all__ = ["DepthView"]
