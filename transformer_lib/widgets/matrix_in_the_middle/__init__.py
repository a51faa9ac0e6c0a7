from transformer_lib.widgets.matrix_in_the_middle.widget import MatrixInTheMiddle

__all__ = ["MatrixInTheMiddle"]
