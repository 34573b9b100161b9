"""Sources that `spade new` starts from."""
