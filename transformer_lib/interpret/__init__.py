"""Looking into a model: what its parts compute for one input."""
