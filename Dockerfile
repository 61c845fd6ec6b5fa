# docker build -t synmt .
# docker run --network none synmt                                     trains the quickstart
# docker run -v "$PWD:/home/synmt/work" -w /home/synmt/work synmt …   any other command

FROM python:3.12-slim AS build
WORKDIR /source
COPY . .
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
RUN pip install --no-cache-dir --index-url https://download.pytorch.org/whl/cpu "torch>=2.6"
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(echo /wheels/synmt-*.whl)[plot,tokenizers]"
RUN useradd --create-home synmt
USER synmt
WORKDIR /home/synmt
ENTRYPOINT ["synmt"]
CMD ["train", "quickstart"]
