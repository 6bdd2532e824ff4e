"""The screen: Textual app, screens, widgets, commands and messages."""
