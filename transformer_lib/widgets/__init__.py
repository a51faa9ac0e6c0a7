"""Figures that compute in the reader's browser, on the page and in a notebook."""

from transformer_lib.widgets.architecture_walk import ArchitectureWalk
from transformer_lib.widgets.attention_map import AttentionMap
from transformer_lib.widgets.beam_tree import BeamTree
from transformer_lib.widgets.block_lab import BlockLab
from transformer_lib.widgets.circuit import Circuit
from transformer_lib.widgets.depth_view import DepthView
from transformer_lib.widgets.embedding_map import EmbeddingMap
from transformer_lib.widgets.goals import Goal
from transformer_lib.widgets.head_view import HeadView
from transformer_lib.widgets.machine import Machine
from transformer_lib.widgets.mask_painter import MaskPainter
from transformer_lib.widgets.matrix_in_the_middle import MatrixInTheMiddle
from transformer_lib.widgets.model_view import ModelView
from transformer_lib.widgets.neuron_view import NeuronView
from transformer_lib.widgets.next_word import NextWord
from transformer_lib.widgets.pair_merger import PairMerger
from transformer_lib.widgets.position_lab import PositionLab
from transformer_lib.widgets.predict import Predict
from transformer_lib.widgets.rotary_arrows import RotaryArrows
from transformer_lib.widgets.sampling_lab import SamplingLab
from transformer_lib.widgets.scaling_lab import ScalingLab
from transformer_lib.widgets.soft_dictionary import SoftDictionary
from transformer_lib.widgets.step_scrubber import StepScrubber
from transformer_lib.widgets.text_cutter import TextCutter
from transformer_lib.widgets.time_lapse import TimeLapse
from transformer_lib.widgets.train_here import TrainHere
from transformer_lib.widgets.train_text import TrainText
from transformer_lib.widgets.training_view import TrainingView
from transformer_lib.widgets.translator import Translator
from transformer_lib.widgets.vector_playground import VectorPlayground
from transformer_lib.widgets.write import Write
from transformer_lib.widgets.your_part import YourPart

__all__ = [
    "ArchitectureWalk",
    "AttentionMap",
    "BeamTree",
    "BlockLab",
    "Circuit",
    "DepthView",
    "EmbeddingMap",
    "Goal",
    "HeadView",
    "Machine",
    "MaskPainter",
    "MatrixInTheMiddle",
    "ModelView",
    "NeuronView",
    "NextWord",
    "PairMerger",
    "PositionLab",
    "Predict",
    "RotaryArrows",
    "SamplingLab",
    "ScalingLab",
    "SoftDictionary",
    "StepScrubber",
    "TextCutter",
    "TimeLapse",
    "TrainHere",
    "TrainText",
    "TrainingView",
    "Translator",
    "VectorPlayground",
    "Write",
    "YourPart",
]
