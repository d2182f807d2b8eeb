#!/bin/sh
# Compares a host's VAAI options with the recommended values. Changes nothing.
#
# NOT TESTED ON A REAL HOST by its authors: only with a fake esxcli (test.sh).
#
#   check-vaai.sh [--dry-run] [--transfer-size KB]
#
# Run it in the ESXi shell. Exit code 1: an option differs from its recommended value. README.md
# gives the sources of the recommendations, and the reasons.
set -eu

dry_run=no
transfer_kb=16384

usage() {
    echo "usage: check-vaai.sh [--dry-run] [--transfer-size KB]" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
        --dry-run) dry_run=yes ;;
        --transfer-size)
            [ $# -ge 2 ] || usage
            transfer_kb=$2
            shift
            ;;
        *) usage ;;
    esac
    shift
done
case $transfer_kb in '' | *[!0-9]*) usage ;; esac

differ=0

# check OPTION WANTED: prints an option, and records whether it differs.
check() {
    if [ "$dry_run" = yes ]; then
        echo "esxcli system settings advanced list -o $1"
        return
    fi
    # esxcli returns an error for an option that this version of ESXi does not know.
    if ! answer=$(esxcli system settings advanced list -o "$1" 2>/dev/null); then
        printf '%-40s %8s  unknown to this ESXi\n' "$1" -
        return
    fi
    value=$(printf '%s\n' "$answer" | awk '$1 == "Int" && $2 == "Value:" { print $3 }')
    if [ "$value" = "$2" ]; then
        printf '%-40s %8s  as recommended\n' "$1" "$value"
    else
        printf '%-40s %8s  recommended: %s\n' "$1" "$value" "$2"
        differ=1
    fi
}

check /DataMover/HardwareAcceleratedMove 1
check /DataMover/HardwareAcceleratedInit 1
check /VMFS3/HardwareAcceleratedLocking 1
check /VMFS3/UseATSForHBOnVMFS5 1
check /VMFS3/EnableBlockDelete 1
check /DataMover/MaxHWTransferSize "$transfer_kb"

if [ "$dry_run" = yes ]; then
    echo "esxcli storage core device vaai status get"
else
    echo
    echo "The offloads of each device (unknown until the first attempt):"
    esxcli storage core device vaai status get
fi
exit "$differ"
