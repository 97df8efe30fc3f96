"""The program `bouncer`; also `python -m app`."""

import sys


def main() -> None:
    """Run a command; an interrupt ends it quietly even while the libraries are being loaded."""
    try:
        from app.cli import main as run  # noqa: PLC0415

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
