from transformer_lib.widgets.block_lab.widget import BlockLab

__all__ = ["BlockLab"]
