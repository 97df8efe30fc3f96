"""The hook that agents run; importable so that the service runs the very same gate."""
