# Rejoinder on CPUs.
#
#   docker build -t rejoinder .
#   docker run -p 8765:8765 -e REJOINDER_AUTH_TOKEN=... -v rejoinder:/var/lib/rejoinder rejoinder
#
# The first start fetches the models (about 1.3 GB) into the volume and builds the language model's kernel for the
# machine's own processor there; later starts take seconds. The compiler is in the image for that kernel.
FROM python:3.12-slim

RUN apt-get update \
    && apt-get install -y --no-install-recommends g++ espeak-ng \
    && rm -rf /var/lib/apt/lists/*

ARG TORCH=torch==2.13.0+cpu
ARG TORCH_CPU_INDEX=https://download.pytorch.org/whl/cpu
RUN pip install --no-cache-dir --extra-index-url ${TORCH_CPU_INDEX} ${TORCH}

WORKDIR /app
COPY . .
RUN pip install --no-cache-dir '.[otel,phone]'

RUN useradd --create-home --uid 10001 rejoinder \
    && install -d -m 0700 -o rejoinder /var/lib/rejoinder
USER rejoinder
# The service switches its libraries' reports off by itself; here also for whatever else is run in the image.
WORKDIR /home/rejoinder
ENV ORT_DISABLE_TELEMETRY=1 \
    HF_HUB_DISABLE_TELEMETRY=1 \
    REJOINDER_HOST=0.0.0.0 \
    REJOINDER_CACHE=/var/lib/rejoinder/models \
    REJOINDER_LATENCY_LOG=/var/lib/rejoinder/latency.db
VOLUME /var/lib/rejoinder
EXPOSE 8765

# Alive; whether it can take a call yet is /readyz. Asked past any proxy that the environment names.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import http.client as h, os, sys; c = h.HTTPConnection('127.0.0.1', int(os.environ.get('REJOINDER_PORT') or 8765), timeout=2); c.request('GET', '/healthz'); sys.exit(c.getresponse().status != 200)"]

CMD ["rejoinder", "serve"]
