"""`agewell mount`: an adaptive file system, mounted."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agewell.filesystems import mounted

app = typer.Typer()


@app.command("mount")
def mount(
    image: Annotated[
        Path, typer.Argument(metavar="IMAGE", help="A file or block device from 'agewell mkfs'.")
    ],
    directory: Annotated[Path, typer.Argument(metavar="DIRECTORY", help="An existing directory.")],
    foreground: Annotated[
        bool, typer.Option("--foreground", "-f", help="Serve it here, until it is unmounted.")
    ] = False,
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--options",
            "-o",
            metavar="NAME[=VALUE],...",
            help="ro, nosuid, nodev, noexec; means=adaptive|clean|plug|thread: how room is made; "
            "placement=lifetime|sepbit|none: where what is collected goes; "
            "prices=ACCESS_US:FURTHER_US:MB_PER_S: by which costs, not those learnt from this "
            "device; rotdelay_us=DELAY:TURN: how far apart syncs are placed on a disk; "
            "cache_mib=N: memory for what describes files; readahead_mib=N: for scattered files "
            "that are read ahead; nodiscard; plain: without a loop device; buffered: through the "
            "page cache; threads=N; private: for you alone.",
        ),
    ] = None,
) -> None:
    """Mount a file system; unmount it by 'umount' or 'agewell umount'.

    What a program has synced is on the medium, whatever happens; what it has not is there after
    a second. Room is made by the means that is cheapest on its disk, behind the backs of those
    who write. An image in a file is mounted through a loop device, by which the kernel waits for
    the end of 'umount' and 'sync'; nothing is read or written through it.

    Example: agewell mount disk.img /mnt/a -o means=adaptive
    """
    words: list[str | Path] = ["mount", image, directory]
    for one in options or []:
        words += ["-o", one]
    if foreground:
        mounted.replace_process([*words, "-f"])
    mounted.call(words)
