"""Our index over the logs of every agent: rebuildable, never ahead of a log."""
