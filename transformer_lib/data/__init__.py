"""Data to train on: stories, texts and pairs, and batches of them. Import from the modules."""
