"""DeepSeek Harness: JSONL, often zstd."""
