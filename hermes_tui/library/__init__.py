"""What the front ends may ask: one implementation of each answer."""
