#!/usr/bin/env bash
# Put promtool and amtool into the virtual environment $1: tests run the rules of alerts over histories, and the ways of
# alerts to people. They are Debian's; the packages are unpacked and not installed, since that would start daemons.
set -euo pipefail

venv=$(realpath "$1")

if command -v promtool > /dev/null && command -v amtool > /dev/null; then
    exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
echo "installing promtool and amtool into $venv, for tests of alerts"
timeout -k 5 120 apt-get download -qq prometheus prometheus-alertmanager 2> /dev/null ||
    { apt-get update -qq && timeout -k 5 120 apt-get download -qq prometheus prometheus-alertmanager 2> /dev/null; }
for package in *.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x --strip-components=3 -C "$venv/bin" --wildcards './usr/bin/promtool' './usr/bin/amtool' 2> /dev/null || true
done
"$venv/bin/promtool" --version > /dev/null 2>&1 && "$venv/bin/amtool" --version > /dev/null 2>&1
