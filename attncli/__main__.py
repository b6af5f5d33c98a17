"""The door of `python -m attncli` and of the command: so light that Ctrl-C is quiet while the rest is loading."""

from __future__ import annotations


def main() -> None:
    """Run the program, and leave with its exit code; 130 where it is interrupted, even while it is still loading."""
    try:
        from attncli import cli

        cli.main()
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
