from transformer_lib.widgets.model_view.widget import ModelView

__all__ = ["ModelView"]
