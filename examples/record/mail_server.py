"""A small mail server's file operations, with no network: maildirs, an append-only index per mailbox, expiry.

    python3 mail_server.py SPOOL {fill,serve,expire} [--rate N] [--seconds S] [--seed N]

The sequence of operations, mailboxes, sizes and pauses depends on the seed and the spool's contents alone. What an
operation does, in system calls:

* deliver: create tmp/ID, write, fsync, rename to new/ID, fsync new/, append an index record, fdatasync the index;
* poll: read the index's tail, list new/, read up to five new messages and rename each into cur/;
* read: read one message of cur/, recent ones more often than old ones;
* delete: unlink one message of cur/;
* expire: unlink the oldest messages of a mailbox beyond its limit and rewrite its index (write, fsync, rename).

Mailboxes are chosen by a Zipf law; sizes are log-normal (median 3 KB, at most 200 KB), as mail is said to be: chosen by us.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import struct
import sys
import time
from pathlib import Path

MAILBOXES = 160
ZIPF_EXPONENT = 0.9
SIZE_MEDIAN_BYTES = 3000
SIZE_SIGMA = 1.2
SIZE_LIMIT_BYTES = 200_000
# Filling stops when this fraction of the file system is used.
FILL_FRACTION = 0.72
# Messages a mailbox keeps for each unit of its popularity; `expire` removes the rest.
KEEP_MESSAGES = 20_000
INDEX_RECORD = struct.Struct("<QQQ40s")
# What a client asks for, and how often; chosen by us.
OPERATIONS = (("deliver", 40), ("poll", 25), ("read", 25), ("delete", 10))


class Spool:
    """Mailboxes below one directory."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.draw = random.Random(seed)
        weights = [1 / (rank + 1) ** ZIPF_EXPONENT for rank in range(MAILBOXES)]
        total = sum(weights)
        self.popularity = [weight / total for weight in weights]
        self.next_id = seed * 10_000_000

    def mailbox(self) -> tuple[int, Path]:
        """A mailbox, popular ones more often."""
        number = self.draw.choices(range(MAILBOXES), self.popularity)[0]
        return number, self.box(number)

    def box(self, number: int) -> Path:
        """The directory of mailbox `number`; popularity is not in the order of creation."""
        scattered = number * 67 % MAILBOXES
        return self.root / f"{scattered % 16:02d}" / f"user{scattered:03d}"

    def create(self) -> None:
        """Make every mailbox, empty."""
        for number in range(MAILBOXES):
            for part in ("tmp", "new", "cur"):
                (self.box(number) / part).mkdir(parents=True)
            (self.box(number) / "index").touch()

    def size(self) -> int:
        """Length of a message in bytes."""
        drawn = self.draw.lognormvariate(math.log(SIZE_MEDIAN_BYTES), SIZE_SIGMA)
        return min(SIZE_LIMIT_BYTES, max(300, int(drawn)))

    def deliver(self, durable: bool = True) -> int:
        """Store one message; return its size."""
        _, box = self.mailbox()
        self.next_id += 1
        name = f"{self.next_id:012d}"
        size = self.size()
        body = self.draw.randbytes(size)
        temporary = box / "tmp" / name
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(descriptor, body)
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.rename(box / "new" / name)
        if durable:
            sync_directory(box / "new")
        record = INDEX_RECORD.pack(self.next_id, size, 0, name.encode())
        descriptor = os.open(box / "index", os.O_WRONLY | os.O_APPEND)
        try:
            os.write(descriptor, record)
            if durable:
                os.fdatasync(descriptor)
        finally:
            os.close(descriptor)
        return size

    def poll(self) -> None:
        """What a client does when it connects."""
        _, box = self.mailbox()
        with (box / "index").open("rb", buffering=0) as index:
            length = index.seek(0, os.SEEK_END)
            index.seek(max(0, length - 64 * INDEX_RECORD.size))
            index.read()
        for name in sorted(os.listdir(box / "new"))[-5:]:
            (box / "new" / name).read_bytes()
            (box / "new" / name).rename(box / "cur" / f"{name}:2,S")

    def read(self) -> None:
        """Read one message again; the exponent makes recent ones likelier."""
        _, box = self.mailbox()
        names = sorted(os.listdir(box / "cur"))
        if names:
            (box / "cur" / names[int(len(names) * self.draw.random() ** 0.4)]).read_bytes()

    def delete(self) -> None:
        """Remove one message."""
        _, box = self.mailbox()
        names = sorted(os.listdir(box / "cur"))
        if names:
            (box / "cur" / names[int(len(names) * self.draw.random())]).unlink()

    def expire(self, number: int) -> None:
        """Bring a mailbox back under its limit and write its index again."""
        box = self.box(number)
        keep = int(KEEP_MESSAGES * self.popularity[number])
        names = sorted(os.listdir(box / "cur"))
        for name in names[: max(0, len(names) - keep)]:
            (box / "cur" / name).unlink()
        with (box / "index.new").open("wb") as index:
            for name in names[-keep:]:
                index.write(INDEX_RECORD.pack(int(name.partition(":")[0]), 0, 1, name.encode()))
            index.flush()
            os.fsync(index.fileno())
        (box / "index.new").rename(box / "index")

    def used_fraction(self) -> float:
        """Part of the file system that is taken."""
        state = os.statvfs(self.root)
        return 1 - state.f_bfree / state.f_blocks


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def fill(spool: Spool) -> None:
    """A server that has been used for a while: deliveries, reads and deletions until the disk is well filled."""
    spool.root.mkdir()
    spool.create()
    while spool.used_fraction() < FILL_FRACTION:
        for _ in range(400):
            spool.deliver(durable=False)
        for _ in range(300):
            spool.poll()
        for _ in range(80):
            spool.delete()
        os.sync()


def serve(spool: Spool, rate: float, seconds: float, expiring: bool) -> None:
    """Operations as a Poisson process of `rate` per second; late ones follow at once."""
    names = [name for name, _ in OPERATIONS]
    weights = [weight for _, weight in OPERATIONS]
    start = time.monotonic()
    due = 0.0
    mailbox = 0
    while True:
        due += spool.draw.expovariate(rate)
        if due >= seconds:
            return
        time.sleep(max(0.0, start + due - time.monotonic()))
        if expiring and spool.draw.random() < 0.3:
            spool.expire(mailbox % MAILBOXES)
            mailbox += 1
            continue
        match spool.draw.choices(names, weights)[0]:
            case "deliver":
                spool.deliver()
            case "poll":
                spool.poll()
            case "read":
                spool.read()
            case _:
                spool.delete()


def main() -> int:
    """Run one verb."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("spool", type=Path)
    parser.add_argument("verb", choices=("fill", "serve", "expire"))
    parser.add_argument("--rate", type=float, default=10.0, help="operations per second")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    spool = Spool(arguments.spool, arguments.seed)
    if arguments.verb == "fill":
        fill(spool)
    else:
        serve(spool, arguments.rate, arguments.seconds, arguments.verb == "expire")
    return 0


if __name__ == "__main__":
    sys.exit(main())
