"""Which trees a recipe needs, and where they come from."""
