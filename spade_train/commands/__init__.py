"""Commands of `spade` that train: each module holds one, as `command`."""
