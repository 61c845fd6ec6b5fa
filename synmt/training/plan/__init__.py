"""What a command would do with a recipe, step by step; nothing is written."""
