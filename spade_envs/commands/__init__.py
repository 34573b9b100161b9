"""Commands of `spade` that play: each module holds one, as `command`."""
