"""Claude Code: JSONL, a DAG a file."""
