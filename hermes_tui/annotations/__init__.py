"""Our own data: pins, tags and notes."""
