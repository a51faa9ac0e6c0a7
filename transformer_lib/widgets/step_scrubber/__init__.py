from transformer_lib.widgets.step_scrubber.widget import StepScrubber

__all__ = ["StepScrubber"]
