# agewell in a container, with no Rust in what is left:
#
#     docker build --tag agewell .
#     docker run --rm agewell compare --workload hot-cold --device hp-97560 --layouts lfs,write-anywhere
#     docker run --rm --volume "$PWD:/data" agewell run my.toml --out results
#
# What asks the kernel for more needs it given: `record` and `mount` run with --privileged, on the host's /sys and /dev.

FROM rust:1.95-slim-bookworm AS build
# Versions are those of the distribution, which the image names.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /agewell
COPY requirements/build.txt requirements/
RUN python3 -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir --require-hashes -r requirements/build.txt
COPY . .
RUN cargo build --locked --release --package agewell-mount --bin agewell-fs \
    && mkdir -p python/agewell/bin \
    && cp target/release/agewell-fs python/agewell/bin/agewell-fs \
    && /opt/build/bin/maturin build --release --locked --compatibility linux --out /wheels

FROM python:3.11-slim-bookworm
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends fuse3 \
    && rm -rf /var/lib/apt/lists/*
COPY requirements/run.txt /tmp/run.txt
RUN pip install --no-cache-dir --require-hashes -r /tmp/run.txt && rm /tmp/run.txt
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-deps /wheels/*.whl && agewell --version
WORKDIR /data
ENTRYPOINT ["agewell"]
CMD ["--help"]
