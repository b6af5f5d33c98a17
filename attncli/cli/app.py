"""The program: the commands, and the one place that turns errors into exit codes.

0 done, 1 `check` found something wrong, 2 the input or the usage is wrong, 70 a fault of attncli, 130 interrupted,
141 nobody reads the output any more.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from attncli import __version__
from attncli.cli.terminal import tell
from attncli.language.errors import AttncliError

OK, WRONG, USAGE, FAULT, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 70, 130, 141

HELP = """The calculator that shows attention's work.

Reads the matrices of an attention layer (Z, W_Q, W_K, W_V, W_O; from YAML, JSON, .npy, .npz, CSV or the command line),
computes every stage, and shows it; explains the arithmetic of any cell; and checks somebody's answers.

\b
Examples:
  attncli compute three-tokens               every stage of a shipped example
  attncli compute p.yaml -s weights -f json  one stage, for a pipeline
  attncli compute Z=z.npy W_Q=q.npy W_K=k.npy W_V=v.npy mask=causal
  attncli explain p.yaml weights[1,3]        the arithmetic of one number
  attncli check p.yaml answers.yaml          is this right? where did it go wrong?

Exit codes: 0 done; 1 check found something wrong; 2 the input or the usage is wrong; 70 a fault of attncli
(ATTNCLI_DEBUG=1 shows the traceback); 130 interrupted; 141 the reader of a pipe has gone.
"""

COMMANDS = {
    "compute": "attncli.cli.compute",
    "explain": "attncli.cli.explain",
    "check": "attncli.cli.check",
    "inspect": "attncli.cli.inspect",
    "examples": "attncli.cli.compute",
    "mistakes": "attncli.cli.check",
}
"""Each command and the module that has it, by ``register(app)``; a run imports only the one that it needs."""


def program(arguments: Sequence[str]) -> typer.Typer:
    """The program with the command that the arguments name, or with all of them (for help and completion)."""
    app = typer.Typer(
        help=HELP,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_options)
    first = next((word for word in arguments if not word.startswith("-")), None)
    if first in COMMANDS:
        modules = [COMMANDS[first]]
    else:
        modules = [] if "--version" in arguments else list(dict.fromkeys(COMMANDS.values()))
    for module in modules:
        import_module(module).register(app)
    return app


def _version(asked: bool) -> None:
    if asked:
        print(f"attncli {__version__}")
        raise typer.Exit


def _options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of a fault of attncli.")] = False,
) -> None:
    if debug:
        os.environ["ATTNCLI_DEBUG"] = "1"
    if context.invoked_subcommand is None:
        print(context.get_help())


# What typer raises for a wrong usage; it carries a click of its own, which nobody else may import.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program, and leave with its exit code. A traceback never reaches a user who didn't ask for it."""
    code = run(arguments)
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        code = _pipe_closed()
    except OSError as error:
        code = _say_refusal(error)
    sys.exit(code)


def run(arguments: Sequence[str] | None = None) -> int:
    """The exit code of a run with these arguments; what goes wrong is said on standard error."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    try:
        return int(program(words)(words, prog_name="attncli", standalone_mode=False) or OK)
    except AttncliError as error:
        return _say_errors(error)
    except UsageError as error:
        return _say_usage(error, words)
    except (KeyboardInterrupt, typer.Abort):
        tell("error", "interrupted")
        return INTERRUPTED
    except SystemExit as left:
        if isinstance(left.__context__, BrokenPipeError):  # typer's own answer to it is 1
            return _pipe_closed()
        raise
    except BrokenPipeError:
        return _pipe_closed()
    except OSError as error:
        return _say_refusal(error)
    except MemoryError:
        tell("error", "there is not enough memory for this\n  Fewer stages (-s) or heads (-H) take less.")
        return USAGE
    except Exception as error:
        return _say_fault(error)


MOST_ERRORS = 20


def _say_errors(error: AttncliError) -> int:
    errors = error.errors
    for one in errors[:MOST_ERRORS]:
        tell("error", str(one))
    if len(errors) > MOST_ERRORS:
        tell("error", f"and {len(errors) - MOST_ERRORS} more")
    return USAGE


_PLAINER = (
    (r"is not a valid int(eger)?( range)?$", "is no whole number"),
    (r"is not a valid float( range)?$", "is no number"),
    (r"^no such option:? '?([^' ]+)'?$", r"no such option: \1"),
    (r"got unexpected extra arguments?(\(s\))? \((.*)\)$", r"too many words: \2"),
)


def _say_usage(error: Exception, words: Sequence[str]) -> int:
    """A wrong usage in our own form: what, and how to mend it."""
    what = error.format_message() if hasattr(error, "format_message") else str(error)
    what = re.sub(r" \(?(?:Possible options:|Did you mean one of:) (.*?)\??\)$", r". Did you mean \1", what)
    what, *hints = dict.fromkeys(re.split(r"[.?] ", what.rstrip(".?")))  # some releases suggest the same twice
    what = what[:1].lower() + what[1:]
    for theirs, ours in _PLAINER:
        what = re.sub(theirs, ours, what)
    hints = [f"{hint}?" if hint.startswith("Did you mean") else hint for hint in hints]
    option = getattr(error, "option_name", None) or ""
    if option[1:2].isdigit() or option[1:2] == ".":
        hints.append("A word that begins with a minus sign reads as an option: write `--` before it, or KEY=-1.")
    unknown = re.fullmatch(r"no such command '(.*)'", what)
    if unknown and not hints and _names_a_problem(unknown[1]):
        hints.append(f"To compute it: attncli compute {unknown[1]}")
    command = " ".join(["attncli", *(word for word in words[:1] if word in COMMANDS)])
    hints.append(f"`{command} --help` shows how it is used.")
    tell("error", "\n  ".join([what, *hints]))
    return USAGE


def _names_a_problem(word: str) -> bool:
    from attncli.reading.examples import names

    return "=" in word or word in names() or os.path.isfile(word)


def _say_refusal(error: OSError) -> int:
    """What the system refuses, mostly to write to standard output."""
    name = error.filename or "standard output"
    tell("error", f"{name}: {(error.strerror or str(error)).lower()}")
    return _nothing_to_flush(USAGE)


def _say_fault(error: Exception) -> int:
    if os.environ.get("ATTNCLI_DEBUG"):
        import traceback

        traceback.print_exception(error)
    kind = type(error).__name__
    tell("error", f"a fault of attncli, not of yours ({kind}); ATTNCLI_DEBUG=1 shows the traceback to report")
    return FAULT


def _pipe_closed() -> int:
    return _nothing_to_flush(PIPE_CLOSED)


def _nothing_to_flush(code: int) -> int:
    from attncli.cli.writing import silence_standard_output

    silence_standard_output()
    return code
