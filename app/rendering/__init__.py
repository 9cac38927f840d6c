"""Pure functions from a moment to what templates and figures show: words and numbers, no colours or markup."""
