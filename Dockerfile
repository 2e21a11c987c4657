# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# For people without Debian 12:
#   docker build -t sealane . && docker run --rm -it sealane            (the demo)
#   docker run --rm -it sealane make test                               (the tests)
# Page guards need userfaultfd, which the default seccomp profile may forbid: `sealane doctor` says so.
FROM debian:12
RUN apt-get update && apt-get install -y --no-install-recommends git make && rm -rf /var/lib/apt/lists/*
WORKDIR /sealane
COPY . .
RUN apt-get update && tools/setup.sh test && rm -rf /var/lib/apt/lists/*
RUN cmake --preset release -DSEALANE_BUILD_TESTS=ON && cmake --build build
CMD ["make", "demo"]
