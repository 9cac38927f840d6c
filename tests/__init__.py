"""The tests: engine/ and app/ mirror the packages; the rest is about the project as a whole."""
