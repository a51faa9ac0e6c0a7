from transformer_lib.widgets.next_word.widget import NextWord

__all__ = ["NextWord"]
