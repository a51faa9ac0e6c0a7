from transformer_lib.widgets.predict.widget import Predict

__all__ = ["Predict"]
