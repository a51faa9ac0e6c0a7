from transformer_lib.widgets.sampling_lab.widget import SamplingLab

__all__ = ["SamplingLab"]
