"""PostgreSQL answering the questions of decision support: seventeen queries over eight tables, and a day's refresh.

The rows are those of `warehouse.py` at scale 0.2, the questions those of `warehouse_queries.py`. Tables, indices and
temporary space lie in directories of their own, every table and every index in a file of its own; the database's page
cache is a small part of its data and its working memory is small, so that reads and temporary files reach the file
system, as with the trace of J. N. Matthews (*Improving File System Performance With Adaptive Methods*, 1999, section
6.2.1), which was taken of file operations, too.

A directory made below `marks` says where each part begins: `mkdir marks/q03` comes right before the third query. The
parts are `insert` (new orders and a checkpoint), `q01` to `q17`, `delete` (old orders and a checkpoint) and `end`.
"""

from __future__ import annotations

import csv
import itertools
import shlex

import harness
from build import TRACED_CALLS
from postgres import PostgresWorkload
from warehouse import INDICES, SCHEMA, Warehouse
from warehouse_queries import QUERIES, REFRESH_SHARE
from workload import Session

SCALE = 0.2
SETTINGS = {
    # Two to four per cent of the data, as a server of the time had of a gigabyte.
    "shared_buffers": "8MB",
    "work_mem": "1MB",
    "hash_mem_multiplier": "1",
    "effective_cache_size": "16MB",
    "random_page_cost": "1.5",
    "temp_tablespaces": "'temporary'",
    # One process a query and no work of its own accord, so that a recording can be repeated.
    "max_parallel_workers_per_gather": "0",
    "max_parallel_maintenance_workers": "0",
    "synchronize_seqscans": "off",
    "autovacuum": "off",
    "jit": "off",
    "checkpoint_timeout": "1d",
    "max_wal_size": "1GB",
    "min_wal_size": "32MB",
    "fsync": "on",
    "listen_addresses": "''",
    "max_connections": "20",
    "huge_pages": "off",
}
TABLESPACES = ("tables", "indices", "temporary")


class DecisionSupport(PostgresWorkload):
    """See the module."""

    name = "decision-support"
    description = f"PostgreSQL, {len(QUERIES)} questions of decision support and a refresh over eight tables, scale {SCALE}"
    size_bytes = 1228 << 20
    memory_limit_bytes = 192 << 20
    tools = ("postgres", "psql", "setpriv", "strace")
    settings = SETTINGS
    directories = TABLESPACES

    def versions(self) -> dict[str, str]:
        strace = harness.run(["strace", "--version"]).splitlines()[0].split()[-1]
        return {**super().versions(), "strace": strace}

    def prepare(self, session: Session) -> None:
        self.set_up(session)
        (session.mount / "marks").mkdir()
        self.load(session)
        self.note_relations(session)
        self.stop(session)
        about = "".join(f"# agewell {key}: {value}\n" for key, value in session.facts.items())
        (session.out / "decision-support-files.strace").write_text(about)
        self.write_parts(session)

    def load(self, session: Session) -> None:
        """Make the tables, fill them, index them, and leave nothing that a later read would have to write."""
        for name in TABLESPACES:
            self.sql(session, f"create tablespace {name} location '{session.mount / name}'")
        self.sql(session, SCHEMA)
        self.copy_rows(session, self.rows(refresh=False))
        self.sql(session, f"set maintenance_work_mem = '24MB'; {INDICES}")
        self.sql(session, "vacuum (freeze, analyze)")
        self.sql(session, "checkpoint")

    @staticmethod
    def rows(refresh: bool) -> dict[str, list[tuple[object, ...]]]:
        """What is loaded, or what a refresh inserts: the orders behind those that are there."""
        warehouse = Warehouse(SCALE)
        if not refresh:
            return {table: list(rows) for table, rows in warehouse.tables().items()}
        new = range(warehouse.orders, warehouse.orders + round(warehouse.orders * REFRESH_SHARE))
        return {
            "purchase": [warehouse.order(number) for number in new],
            "item": list(itertools.chain.from_iterable(map(warehouse.items, new))),
        }

    def copy_rows(self, session: Session, tables: dict[str, list[tuple[object, ...]]]) -> None:
        """Load rows through files in the scratch directory."""
        for table, rows in tables.items():
            path = session.scratch / f"{table}.csv"
            with path.open("w", newline="") as output:
                csv.writer(output).writerows(rows)
            self.sql(session, f"\\copy {table} from '{path}' csv")
            path.unlink()

    def sql(self, session: Session, text: str) -> str:
        """Run SQL as the owner of the database; what it printed."""
        psql = [
            "psql",
            "-X",
            "-q",
            "-t",
            "-A",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            str(session.scratch),
            "-U",
            "bench",
        ]
        return harness.run([*psql, "-d", "bench"], input=text)

    def note_relations(self, session: Session) -> None:
        """Which file holds which table or index: paths are numbers."""
        listing = self.sql(
            session,
            "select coalesce(t.spcname, 'pg_default') || ' ' || relname || ' ' || pg_relation_filepath(c.oid) || ' '"
            " || pg_relation_size(c.oid) / 8192 from pg_class c left join pg_tablespace t on t.oid = c.reltablespace"
            " where relnamespace = 'public'::regnamespace and relkind in ('r', 'i') order by 1",
        )
        (session.out / "decision-support-relations.txt").write_text(listing)

    def write_parts(self, session: Session) -> None:
        """One file of SQL a part, named as its mark."""
        new = self.rows(refresh=True)
        inserted = []
        for table, rows in new.items():
            path = session.scratch / f"new-{table}.csv"
            with path.open("w", newline="") as output:
                csv.writer(output).writerows(rows)
            inserted.append(f"\\copy {table} from '{path}' csv\n")
        last = Warehouse.key_of(len(new["purchase"]) - 1)
        deleted = "".join(
            f"delete from {table} where order_key <= {last};\n" for table in ("item", "purchase")
        )
        parts = {
            "insert": "".join(inserted) + "checkpoint;\n",
            **QUERIES,
            "delete": deleted + "checkpoint;\n",
        }
        for name, text in parts.items():
            (session.scratch / f"{name}.sql").write_text(text)

    def run(self, session: Session) -> None:
        parts = ["insert", *QUERIES, "delete"]
        psql = f"psql -X -q -v ON_ERROR_STOP=1 -o /dev/null -h {session.scratch} -U bench -d bench"
        control = shlex.join(self.command("pg_ctl", "-D", str(session.mount / "data"), "-w"))
        log = shlex.quote(str(session.scratch / "server.log"))
        script = [
            'echo $$ > "$0"',
            f"cd {shlex.quote(str(session.mount))}",
            f"{control} -l {log} start > /dev/null",
            *(
                f"mkdir marks/{part} && {psql} -f {shlex.quote(str(session.scratch / f'{part}.sql'))}"
                for part in parts
            ),
            "mkdir marks/end",
            f"{control} -m fast stop > /dev/null",
        ]
        strace = [
            "strace",
            "-f",
            "-ttt",
            "-y",
            "-qq",
            "-s",
            "0",
            "-e",
            "signal=none",
            "--seccomp-bpf",
        ]
        output = ["-A", "-o", str(session.out / "decision-support-files.strace")]
        session.phase("questions")
        harness.run_child(
            [
                *strace,
                "-e",
                f"trace={TRACED_CALLS}",
                *output,
                "sh",
                "-e",
                "-c",
                "\n".join(script),
                str(session.group),
            ],
            env={
                "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "LC_ALL": "C",
            },
        )

    def finish(self, session: Session) -> None:
        """Stop the server if the recording broke off; under strace it runs without our knowing."""
        self.server_running = (
            self.server_running or (session.mount / "data/postmaster.pid").exists()
        )
        super().finish(session)
