"""Measure a GPU in ten minutes: ``python -m transformer_lib.training.gpu``.

``machine`` is what the machine says of itself; ``timing`` measures, and keeps what was measured;
``parts`` are the questions that are asked; ``programs`` are those that need programs of their own.
"""
