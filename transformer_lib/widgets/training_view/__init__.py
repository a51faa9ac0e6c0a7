from transformer_lib.widgets.training_view.widget import TrainingView

__all__ = ["TrainingView"]
