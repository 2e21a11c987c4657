# SPDX-FileCopyrightText: The Sealane authors
# SPDX-License-Identifier: Apache-2.0
#
# Two commands for people; everything else is CMake (see CMakePresets.json and CONTRIBUTING.md).
#   make demo   installs what is missing, builds, and shows what Sealane does on this machine
#   make test   installs what is missing, builds, and runs all tests

JOBS ?= $(shell nproc)
SEALANE := build/bin/sealane

.PHONY: demo test torch2 engines check packages clean
.NOTPARALLEL:

demo:
	@tools/setup.sh demo
	@grep -qs '^build bin/sealane-bench-mpi' build/build.ninja || cmake --preset release || \
	  $(call advise,configuring failed: see the lines above)
	@cmake --build build -j $(JOBS) --target sealane-demo || \
	  $(call advise,the build failed: fix the first error above and run 'make demo' again)
	@tools/demo.sh $(SEALANE) || $(call advise,the demo failed: run '$(SEALANE) doctor' to see what this machine lacks)

test:
	@tools/setup.sh test
	@grep -qs '^SEALANE_BUILD_TESTS:BOOL=ON' build/CMakeCache.txt || cmake --preset release -DSEALANE_BUILD_TESTS=ON || \
	  $(call advise,configuring failed: see the lines above)
	@cmake --build build -j $(JOBS) || \
	  $(call advise,the build failed: fix the first error above and run 'make test' again)
	@ctest --test-dir build -j $(JOBS) --output-on-failure --progress || \
	  $(call advise,tests failed: 'ctest --test-dir build --rerun-failed --output-on-failure' shows only those)

# The PyTorch backend with a PyTorch 2 from PyPI, in build/torch2; TORCH=VERSION takes another than the newest.
torch2:
	@tools/setup.sh test
	@test -f build/build.ninja || cmake --preset release -DSEALANE_BUILD_TESTS=ON || \
	  $(call advise,configuring failed: see the lines above)
	@tools/torch2.sh || $(call advise,PyTorch 2: see the lines above)

# PyTorch, Transformers, Accelerate and PEFT from PyPI on the emulated GPU, in build/engines (says its size first).
engines:
	@tools/setup.sh test
	@grep -qs '^SEALANE_BUILD_TESTS:BOOL=ON' build/CMakeCache.txt || cmake --preset release -DSEALANE_BUILD_TESTS=ON || \
	  $(call advise,configuring failed: see the lines above)
	@tools/engines.sh || $(call advise,the engines: see the lines above)

# .deb, .rpm and a tarball into build-packages/packages. A build of its own: that of the tests is left as it is. A
# compiler cache must not rewrite paths, for the bits would depend on it.
packages:
	@tools/setup.sh package
	@env -u CCACHE_BASEDIR cmake --preset release -B build-packages -DSEALANE_BUILD_TESTS=OFF || \
	  $(call advise,configuring failed: see the lines above)
	@env -u CCACHE_BASEDIR cmake --build build-packages -j $(JOBS) --target sealane-packed || \
	  $(call advise,the build failed: fix the first error above)
	@tools/packages.sh build-packages || $(call advise,packaging failed: see the lines above)

# What CI checks beyond the tests: format, clang-tidy, sanitizers, fuzzing, packages in a bare Debian.
check:
	@tools/setup.sh check
	@tools/check.sh

clean:
	rm -rf build build-asan build-tsan build-fuzz build-tidy build-packages build-again

# Ends a failed step with one line that says what to do.
advise = { echo "sealane: $(1)" >&2; exit 1; }
