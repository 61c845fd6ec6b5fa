"""One process that stays warm: translations for programs, and a page that shows syntax."""
