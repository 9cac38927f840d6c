"""Speed is measured here, never asserted in a test."""
