from transformer_lib.widgets.neuron_view.widget import NeuronView

__all__ = ["NeuronView"]
