from transformer_lib.widgets.train_text.widget import TrainText

__all__ = ["TrainText"]
