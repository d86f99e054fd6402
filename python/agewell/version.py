"""The version of agewell, as in the workspace's Cargo.toml."""

from agewell._agewell import version

__version__ = version()
