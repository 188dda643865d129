"""Report: the page, from records alone."""
