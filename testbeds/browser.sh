#!/bin/sh
# Chromium with Chinese fonts, for the browser tests. Says why when it cannot be had.
set -eu
command -v chromium >/dev/null 2>&1 && exit 0
if ! command -v apt-get >/dev/null 2>&1 || [ "$(id -u)" != 0 ]; then
    echo "testbed: no chromium, and only root on Debian can install it here: browser tests are skipped" >&2
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-noto-cjk >/dev/null ||
    echo "testbed: chromium could not be installed: browser tests are skipped" >&2
