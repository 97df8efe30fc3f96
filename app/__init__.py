"""Memory Bouncer: the service that judges what coding agents want to remember."""
