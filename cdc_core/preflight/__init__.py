"""What is checked before a table is captured: each check with its remedy and its page."""
