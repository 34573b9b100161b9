"""The self-play loop: one model designs environments and plays them."""
