from transformer_lib.widgets.attention_map.widget import AttentionMap

__all__ = ["AttentionMap"]
