"""The path of a change: capture, match, advance, execute, wake; and what people do to runs."""
