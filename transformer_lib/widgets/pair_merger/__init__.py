from transformer_lib.widgets.pair_merger.widget import PairMerger

__all__ = ["PairMerger"]
