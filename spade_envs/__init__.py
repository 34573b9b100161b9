"""Gymnasium's side: registration, environments, vectors, pools and episodes."""
