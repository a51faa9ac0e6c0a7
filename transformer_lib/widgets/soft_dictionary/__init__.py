from transformer_lib.widgets.soft_dictionary.widget import SoftDictionary

__all__ = ["SoftDictionary"]
