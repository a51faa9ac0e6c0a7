from transformer_lib.widgets.beam_tree.widget import BeamTree

__all__ = ["BeamTree"]
