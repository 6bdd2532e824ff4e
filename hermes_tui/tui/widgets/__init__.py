"""Widgets drawn line by line, so that cost follows what is on screen."""
