"""What was found, for people: tables, formulas, summaries."""
