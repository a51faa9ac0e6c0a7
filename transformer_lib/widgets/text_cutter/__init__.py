from transformer_lib.widgets.text_cutter.widget import TextCutter

__all__ = ["TextCutter"]
