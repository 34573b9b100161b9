"""The commands that need nothing but the runtime: `doctor`, `validate`, `explain`."""
