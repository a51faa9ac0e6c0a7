"""Training: the loop, its optimizers and schedules, checkpoints, run logs. Import by module."""
