#!/usr/bin/env bash
# Runs a command beside a SoapySDRServer at tcp://127.0.0.1:55132, in a network of its own (unshare -nm). Debian's server ends without Avahi, and Avahi without D-Bus: both are private.
set -euo pipefail
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$folder"' EXIT

# Waits until a file has a line in it.
wait_for() {
    for _ in $(seq 100); do
        grep -qs "$2" "$1" && return
        sleep 0.1
    done
    echo "no '$2' within 10 s:" && cat "$1"
    exit 1
}

ip link set lo up
# Where Avahi looks whether it runs already.
mount -t tmpfs tmpfs /run
mkdir /run/avahi-daemon
cat >"$folder/bus.conf" <<CONF
<busconfig>
  <type>system</type>
  <listen>unix:path=$folder/bus</listen>
  <policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*"/><allow eavesdrop="true"/></policy>
</busconfig>
CONF
printf '[server]\nuse-ipv6=no\nallow-interfaces=lo\n' >"$folder/avahi.conf"
export DBUS_SYSTEM_BUS_ADDRESS="unix:path=$folder/bus"
dbus-daemon --config-file="$folder/bus.conf" --nofork --nopidfile --print-address >"$folder/bus.log" 2>&1 &
wait_for "$folder/bus.log" "$folder/bus"
avahi-daemon --no-drop-root --no-chroot --no-proc-title --no-rlimits --file="$folder/avahi.conf" >"$folder/avahi.log" 2>&1 &
wait_for "$folder/avahi.log" "startup complete"
stdbuf -oL SoapySDRServer --bind=tcp://127.0.0.1:55132 >"$folder/server.log" 2>&1 &
server=$!
wait_for "$folder/server.log" "Press Ctrl+C"
# What happens to the server, or to the network, after some seconds.
if [ -n "${KAFLOW_MISHAP:-}" ]; then
    (sleep 4 && eval "$KAFLOW_MISHAP") &
fi
"$@"
