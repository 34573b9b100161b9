"""Learners: what turns a batch of samples into new weights (training.md section 3)."""
