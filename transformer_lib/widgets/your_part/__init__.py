from transformer_lib.widgets.your_part.widget import YourPart

__all__ = ["YourPart"]
