"""Dialogs: what is asked before anything is changed, and what needs to be read."""
