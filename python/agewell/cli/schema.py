"""`agewell schema`: what an experiment may say, for editors."""

from __future__ import annotations

import typer

from agewell.cli.terminal import print_json

app = typer.Typer()


@app.command("schema")
def schema() -> None:
    """Print what an experiment may say, as a JSON Schema.

    An editor that knows TOML and JSON Schemas completes and checks experiments with it: with
    Taplo, write `#:schema agewell.json` into the first line of an experiment.

    Example: agewell schema > agewell.json
    """
    from agewell.experiments.configuration import schema

    print_json(schema())
