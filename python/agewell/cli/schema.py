"""`agewell schema`: what an experiment may say and what commands print, as JSON Schemas."""

from __future__ import annotations

from typing import Annotated

import typer

from agewell.cli.terminal import print_text
from agewell.files import json_text

app = typer.Typer()


@app.command("schema")
def schema(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COMMAND]...",
            help="Of what this command prints with --json; of experiments by default.",
        ),
    ] = None,
) -> None:
    """Print what an experiment may say, or what a command prints, as a JSON Schema.

    An editor that knows TOML and JSON Schemas completes and checks experiments with it: with
    Taplo, write `#:schema agewell.json` into the first line of an experiment.

    Examples: agewell schema > agewell.json; agewell schema trace info
    """
    if words:
        from agewell.values.documents.schemas import of_command

        print_text(json_text(of_command(" ".join(words))))
        return
    from agewell.experiments.configuration import schema as of_experiments

    print_text(json_text(of_experiments()))
