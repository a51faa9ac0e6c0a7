"""The same numbers sooner: nothing here changes a result."""
