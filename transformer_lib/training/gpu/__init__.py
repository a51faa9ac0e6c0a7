"""Measure a GPU in ten minutes: ``python -m transformer_lib.training.gpu``.

``machine`` is what the machine says of itself; ``timing`` measures, and keeps what was measured.
The questions are in ``right``, ``speed``, and, where they need programs of their own, ``programs``.
"""
