#!/bin/sh
# Sets a host's VAAI options to the recommended values, or to ESXi's defaults.
#
# NOT TESTED ON A REAL HOST by its authors: only with a fake esxcli (test.sh).
#
#   set-vaai.sh [--dry-run] [--transfer-size KB] [--ats-heartbeat on|off] [--undo]
#
# Run it in the ESXi shell; it takes effect at once. --dry-run only prints the commands. --undo
# sets all options to ESXi's defaults. README.md gives the sources of the recommendations, and the
# reasons.
set -eu

dry_run=no
undo=no
transfer_kb=16384
heartbeat=1

usage() {
    echo "usage: set-vaai.sh [--dry-run] [--transfer-size KB] [--ats-heartbeat on|off] [--undo]" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
        --dry-run) dry_run=yes ;;
        --undo) undo=yes ;;
        --transfer-size)
            [ $# -ge 2 ] || usage
            transfer_kb=$2
            shift
            ;;
        --ats-heartbeat)
            [ $# -ge 2 ] || usage
            case $2 in on) heartbeat=1 ;; off) heartbeat=0 ;; *) usage ;; esac
            shift
            ;;
        *) usage ;;
    esac
    shift
done
case $transfer_kb in '' | *[!0-9]*) usage ;; esac
# ESXi accepts at most 16 MB (002, page 30). Multiples of 1 MB do not split extents of 1 MB.
if [ "$transfer_kb" -lt 1024 ] || [ "$transfer_kb" -gt 16384 ] ||
    [ $((transfer_kb % 1024)) -ne 0 ]; then
    echo "set-vaai.sh: a transfer size is 1024 to 16384 KB, in steps of 1024" >&2
    exit 2
fi

# run COMMAND...: runs the command, or only prints it.
run() {
    echo "$*"
    [ "$dry_run" = yes ] || "$@"
}

# set_option OPTION VALUE
set_option() {
    # Options that this version of ESXi does not know are skipped, with a message.
    if [ "$dry_run" = no ] && ! esxcli system settings advanced list -o "$1" >/dev/null 2>&1; then
        echo "$1: unknown to this ESXi"
        return
    fi
    if [ "$undo" = yes ]; then
        run esxcli system settings advanced set --default --option "$1"
    else
        run esxcli system settings advanced set --int-value "$2" --option "$1"
    fi
}

set_option /DataMover/HardwareAcceleratedMove 1
set_option /DataMover/HardwareAcceleratedInit 1
set_option /VMFS3/HardwareAcceleratedLocking 1
set_option /VMFS3/UseATSForHBOnVMFS5 "$heartbeat"
set_option /VMFS3/EnableBlockDelete 1
set_option /DataMover/MaxHWTransferSize "$transfer_kb"
