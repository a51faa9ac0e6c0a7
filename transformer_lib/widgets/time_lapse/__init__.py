from transformer_lib.widgets.time_lapse.widget import TimeLapse

__all__ = ["TimeLapse"]
