"""Data that needs no network, and batches of it. Import what you need from its module."""
