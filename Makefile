# Forwards to the CMake presets, so that the usual words work.
#
#   make test                         build with sanitizers, run every test
#   make demo [LOGS=PATH KIND=codex]  build, and show what Annal does
#   make build, make install [PREFIX=/usr/local] [DESTDIR=]
#   make bench, make format, make clean

PREFIX ?= /usr/local

.PHONY: build test demo install bench format clean setup

build: setup
	cmake --workflow --preset release

# The last lines are Check's summaries, one for each folder.
test: setup
	cmake --workflow --preset dev
	@sed -n 's|^[0-9]*/[0-9]* Test: ||p; /^[0-9]*%: Checks/p' build/dev/Testing/Temporary/LastTest.log

clean:
	rm -rf build

setup:
	@cmake/setup.sh
