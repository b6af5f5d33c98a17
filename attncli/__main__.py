"""The door of `python -m attncli` and of the command: so light that Ctrl-C is quiet while the rest is loading."""

from __future__ import annotations


def main() -> None:
    """Run the program, and leave with its exit code; 130 where it is interrupted, even while it is still loading."""
    import gc

    gc.set_threshold(1_000_000, 50, 50)  # modules live for good: to look for garbage among them is 6 % of the start
    try:
        from attncli.cli import app

        app.main()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    finally:
        gc.freeze()  # nor at the end, where the system takes the memory back anyway: another 10 %


if __name__ == "__main__":
    main()
