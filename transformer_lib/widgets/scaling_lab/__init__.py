from transformer_lib.widgets.scaling_lab.widget import ScalingLab

__all__ = ["ScalingLab"]
