"""One module for each coding agent: how the hook is put into its settings."""
