# Poolscope in a small image: docker build -t poolscope . && docker run -p 8000:8000 -v poolscope:/data poolscope

FROM python:3.13-slim AS build
WORKDIR /src
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
COPY requirements.txt ./
RUN python -m venv --without-pip /venv && pip --python /venv/bin/python install --require-hashes -r requirements.txt
# Node.js comes from PyPI here and stays in this stage.
COPY requirements-node.txt package.json package-lock.json .npmrc ./
COPY scripts/build_vendor.py scripts/
RUN python scripts/build_vendor.py

FROM python:3.13-slim
RUN useradd --uid 10001 --user-group --no-create-home poolscope && install -d -o poolscope -g poolscope /data
WORKDIR /srv/poolscope
COPY --from=build /venv /venv
COPY engine engine
COPY app app
COPY --from=build /src/app/static/vendor app/static/vendor
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 POOLSCOPE_DATA=/data
USER 10001
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
CMD ["python", "-m", "app.cli", "serve", "--host", "0.0.0.0", "--port", "8000"]
