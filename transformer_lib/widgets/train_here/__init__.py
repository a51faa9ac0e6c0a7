from transformer_lib.widgets.train_here.widget import TrainHere

__all__ = ["TrainHere"]
