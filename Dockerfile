# Two images from one build, for any builder of OCI images:
#
#   docker build --target scheduler -t hascheduler:0.3.0 .
#   docker build --target processor -t hascheduler-processor:0.3.0 .
#
# Processors of your own, modules with `handlers`, go on top of the second:
#
#   FROM hascheduler-processor:0.3.0
#   COPY resize.py /processors/
#   CMD ["processor", "resize"]
#
# Every version is in a lock file with its hash. The process writes nothing, needs no home and runs as any user.
# The one image from elsewhere; a build argument with @sha256:… behind the tag pins it, as nobody can move a digest.
ARG PYTHON_IMAGE=python:3.12.12-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
# The core is compiled here; without this variable the wheel is pure Python, and nothing of the next line is needed.
ENV HATCH_BUILD_HOOK_ENABLE_CUSTOM=true
# hadolint ignore=DL3008  # whichever compiler the base has: it stays behind in this stage
RUN apt-get update -q && apt-get install -q -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
# Without pip: it is told from outside where to install.
RUN python -m venv --without-pip /opt/hascheduler && python -m venv --without-pip tools
# First what changes seldom, so that builders can keep it.
COPY requirements-runtime.lock requirements-build.lock ./
RUN python -m pip --python /opt/hascheduler install --require-hashes --only-binary=:all: --no-compile \
      -r requirements-runtime.lock \
    && python -m pip --python tools install --require-hashes --only-binary=:all: -r requirements-build.lock
COPY pyproject.toml hatch_build.py hatch_metadata.py README.md LICENSE NOTICE ./
COPY hascheduler hascheduler
# Compiled now, as nothing can be written later, and believed without a look at the sources' times.
RUN tools/bin/hatchling build -t wheel -d dist \
    && python -m pip --python /opt/hascheduler install --no-deps --no-index --no-compile dist/*.whl \
    && /opt/hascheduler/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/hascheduler/lib

FROM ${PYTHON_IMAGE} AS runtime
ARG VERSION=0.3.0
LABEL org.opencontainers.image.vendor="hascheduler" \
      org.opencontainers.image.version="${VERSION}"
RUN python -m pip uninstall -q -y --root-user-action=ignore pip
COPY --from=build /opt/hascheduler /opt/hascheduler
ENV PATH=/opt/hascheduler/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HASCHEDULER_HEALTH_PORT=9090
# Fails only if the process must be restarted, as some runtimes do then. Kubernetes has probes of its own.
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s CMD ["hascheduler", "health", "--live"]
STOPSIGNAL SIGTERM
USER 10001:10001
ENTRYPOINT ["hascheduler"]

FROM runtime AS processor
LABEL org.opencontainers.image.title="hascheduler-processor" \
      org.opencontainers.image.description="Runs the jobs of hascheduler, with the ready-made handlers"
# Modules are looked for where the process starts.
WORKDIR /processors
CMD ["processor", "hascheduler.handlers.log", "hascheduler.handlers.sleep", "hascheduler.handlers.webhook"]

# Last, so that it is also what a build without a target makes.
FROM runtime AS scheduler
LABEL org.opencontainers.image.title="hascheduler" \
      org.opencontainers.image.description="A replica of hascheduler, a highly available job scheduler"
WORKDIR /
CMD ["serve"]
