"""Which models there are, how probable they are a priori, and how the probable ones are found (section 3.2)."""
