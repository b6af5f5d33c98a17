"""The smallest Typer program with two commands."""

import typer

app = typer.Typer(add_completion=False)


@app.command()
def one() -> None:
    print("1.0.0")


@app.command()
def two() -> None:
    print("2")


app()
