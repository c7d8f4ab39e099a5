"""What keeps the documentation true: parts of pages that are generated from the code, and what
tests ask of pages."""
