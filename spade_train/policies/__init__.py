"""Policies: what turns a prompt's tokens into a message's tokens (training.md section 5)."""
