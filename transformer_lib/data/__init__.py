"""Data to train on: stories, texts and pairs, and their way into batches. Import from the modules."""
