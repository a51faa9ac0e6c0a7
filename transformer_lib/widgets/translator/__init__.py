"""See :mod:`transformer_lib.widgets.translator.widget`."""

from transformer_lib.widgets.translator.widget import Translator

__all__ = ["Translator"]
