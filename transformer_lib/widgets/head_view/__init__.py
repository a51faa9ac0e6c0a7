from transformer_lib.widgets.head_view.widget import HeadView

__all__ = ["HeadView"]
