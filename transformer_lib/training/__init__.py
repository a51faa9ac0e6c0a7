"""Training: for now, the run logs. Import what you need from its module."""
