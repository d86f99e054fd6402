"""A software build: unpack, commit to git, configure, make, edit, make again, install, archive, search, clean.

Two C projects (OpenSSL's libraries and libsodium), whose sources come as crates from crates.io through `cargo vendor`, so
that no other download is needed. Compiled without optimisation, which keeps the compiler from hiding the file system.
The compiler's temporary files are on the recorded file system; the compiler itself and the system's headers are not.

Everything runs below strace, which notes the file operations beside the block requests.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import harness
from workload import Session, Workload

CRATES = {"openssl-src": "=300.6.1", "libsodium-sys": "=0.2.7"}
# Cycles of unpack ... clean; the trees of earlier cycles stay until KEPT_TREES are there.
CYCLES = 4
KEPT_TREES = 3
PAUSE_SECONDS = 20

OPENSSL_OPTIONS = (
    "linux-x86_64 no-asm no-shared no-module no-tests no-legacy no-engine no-zlib no-md2 no-rc5 no-docs no-apps "
    "no-aria no-camellia no-cmp no-cms no-ct no-idea no-ml-dsa no-ml-kem no-quic no-seed no-slh-dsa no-sm2 no-sm4 "
    "no-srp no-ts -O0"
)
SODIUM_OPTIONS = "--disable-shared CFLAGS=-O0"

# Calls that change or read a file, and those needed to know which file, offset and directory they mean.
TRACED_CALLS = (
    "open,openat,openat2,creat,close,dup,dup2,dup3,fcntl,lseek,"
    "read,write,pread64,pwrite64,readv,writev,preadv,pwritev,preadv2,pwritev2,copy_file_range,sendfile,"
    "truncate,ftruncate,fallocate,fsync,fdatasync,sync,syncfs,"
    "unlink,unlinkat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,mkdir,mkdirat,rmdir,"
    "chdir,fchdir,fork,vfork,clone,clone3"
)

GIT = "git -c user.name=agewell -c user.email=agewell@localhost -c gc.auto=0"


class Build(Workload):
    """See the module."""

    name = "build"
    description = "software build: OpenSSL libraries and libsodium, unpack, git commit, configure, make -j2, edit, make, install, clean"
    size_bytes = 1 << 30
    memory_limit_bytes = 320 << 20
    tools = ("cargo", "cc", "git", "make", "perl", "strace", "tar")

    def versions(self) -> dict[str, str]:
        first_line = {
            "gcc": harness.run(["cc", "--version"]),
            "make": harness.run(["make", "--version"]),
            "git": harness.run(["git", "--version"]),
            "strace": harness.run(["strace", "--version"]),
        }
        tools = {name: text.splitlines()[0].split()[-1] for name, text in first_line.items()}
        return {**tools, **{name: version.lstrip("=") for name, version in CRATES.items()}}

    def prepare(self, session: Session) -> None:
        sources = self.fetch(session.scratch)
        (session.mount / "tmp").mkdir()
        archive = session.mount / "sources.tar"
        harness.run_child(
            ["tar", "-C", str(sources), "-cf", str(archive), "openssl", "libsodium"], session.group
        )
        about = "".join(f"# agewell {key}: {value}\n" for key, value in session.facts.items())
        (session.out / "build-files.strace").write_text(about)

    @staticmethod
    def fetch(scratch: Path) -> Path:
        """The two source trees, as `openssl` and `libsodium` below the directory returned."""
        project = scratch / "fetch"
        (project / "src").mkdir(parents=True)
        (project / "src/lib.rs").touch()
        wanted = "".join(f'{name} = "{version}"\n' for name, version in CRATES.items())
        (project / "Cargo.toml").write_text(
            f'[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n\n[dependencies]\n{wanted}\n[workspace]\n'
        )
        harness.run(["cargo", "vendor", "--quiet", "vendor"], cwd=project)
        sources = scratch / "sources"
        sources.mkdir()
        shutil.move(project / "vendor/openssl-src/openssl", sources / "openssl")
        shutil.move(project / "vendor/libsodium-sys/libsodium", sources / "libsodium")
        return sources

    def run(self, session: Session) -> None:
        cycles = max(1, round(CYCLES * session.time_scale))
        for cycle in range(cycles):
            self.cycle(session, cycle)

    def inspect(self, session: Session) -> None:
        # What is there in the end checks the file operations that were seen: see README.md.
        found = (
            path for path in session.mount.rglob("*") if not path.is_symlink() and path.is_file()
        )
        lines = (
            f"{path.relative_to(session.mount)} {path.stat().st_size}\n" for path in sorted(found)
        )
        (session.out / "build-files.listing").write_text("".join(lines))

    def cycle(self, session: Session, cycle: int) -> None:
        """One round of a developer's work in a fresh tree."""
        tree = session.mount / f"tree{cycle}"
        openssl = tree / "openssl"
        expired = session.mount / f"tree{cycle - KEPT_TREES}"
        if expired.exists():
            self.step(session, "remove an old tree", session.mount, f"rm -rf {expired.name}")
        self.step(
            session,
            "unpack",
            session.mount,
            f"mkdir {tree.name} && tar -C {tree.name} -xf sources.tar",
        )
        self.step(
            session, "git commit", tree, f"git init -q && {GIT} add -A && {GIT} commit -q -m import"
        )
        both = f"./configure {SODIUM_OPTIONS} > configure.log 2>&1 && make -j2 > make.log 2>&1"
        if cycle % 2 == 0:
            self.step(session, "libsodium", tree / "libsodium", both)
        self.step(
            session, "configure", openssl, f"perl Configure {OPENSSL_OPTIONS} > configure.log 2>&1"
        )
        self.step(session, "make", openssl, "make -j2 build_libs > make.log 2>&1")
        session.idle(PAUSE_SECONDS)
        session.drop_caches()
        # A changed line in every source of four subdirectories.
        edited = " ".join(f"crypto/{part}/*.c" for part in ("bn", "ec", "rsa", "x509"))
        edit = f"for file in {edited}; do echo >> $file; done && {GIT} diff --stat > diff.log"
        self.step(session, "edit", openssl, edit)
        self.step(session, "make again", openssl, "make -j2 build_libs >> make.log 2>&1")
        self.step(
            session, "install", openssl, "make install_dev DESTDIR=../installed > install.log 2>&1"
        )
        session.idle(PAUSE_SECONDS)
        session.drop_caches()
        self.step(session, "search", tree, "grep -rl OPENSSL_free openssl > found.log")
        self.step(session, "archive", tree, "tar -czf release.tar.gz installed openssl/include")
        self.step(session, "clean", openssl, "make clean > clean.log 2>&1")
        time.sleep(2)

    @staticmethod
    def step(session: Session, name: str, directory: Path, script: str) -> None:
        """Run a shell script in `directory` below strace, inside the memory limit."""
        session.phase(name)
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
            "-e",
            f"trace={TRACED_CALLS}",
        ]
        output = ["-A", "-o", str(session.out / "build-files.strace")]
        # strace itself stays outside the limit; the shell enters it. `cd` is traced, so that a reader knows where it is.
        inside = 'echo $$ > "$0" && cd "$1" && eval "$2"'
        command = [*strace, *output, "sh", "-c", inside, str(session.group), str(directory), script]
        environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "TMPDIR": str(session.mount / "tmp"),
            "LC_ALL": "C",
            "HOME": str(session.scratch),
        }
        harness.run_child(command, env=environment)
