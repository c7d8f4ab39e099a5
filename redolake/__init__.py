"""What Redolake offers to programs that read its tables."""
