#!/usr/bin/env bash
# Make the passwords of the bus's users, once, in infra/.env (or $1): compose reads it, nobody else may. Users that are new
# in nats.conf get theirs when it is run again; to change one, remove its line, run this, and start everything anew.
# The configuration may be another than infra/nats.conf: bus_passwords.sh FILE CONFIGURATION...
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
file=${1:-$here/.env}
configuration=("${@:2}")

umask 077
touch "$file"
chmod 600 "$file"
grep -oh 'PILOTLIGHT_BUS_[A-Z0-9_]*' "${configuration[@]:-$here/nats.conf}" | sort -u | while read -r name; do
    grep -q "^$name=" "$file" && continue
    # It begins with letters: the server reads a variable as it reads its configuration, and 7e9 is a number there.
    echo "$name=pl_$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')" >> "$file"
done
