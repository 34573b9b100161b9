"""Commands of `spade` that train: each module holds one, as `command`."""

# Written out, since `spade_train.presets` imports numpy and pydantic, and help is to come at once.
PRESETS_TOLD = (
    "Presets: tiny (default), games-4b, games-8b, games-30b, games-nemotron-30b,\n"
    "         tools-4b, tools-8b, tools-30b.\n\n"
)
