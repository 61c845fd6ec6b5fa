"""Results as values: tables, figures and reports, and one renderer for each format in which they
are shown."""
