"""Files of other programs, read and written without them: checkpoints and SavedModels."""
