#!/bin/sh
# Reclaims deleted space of VMFS datastores, with the largest reclaim unit that ESXi accepts.
#
# NOT TESTED ON A REAL HOST by its authors: only with a fake esxcli (test.sh).
#
#   reclaim.sh [--dry-run] DATASTORE...
#   reclaim.sh [--dry-run] --all
#
# Run it in the ESXi shell of one host with access to the datastores. --all selects VMFS 5, because
# VMFS 6 reclaims by itself. The reclaim unit is 1% of the free space in MB, rounded down, or 200,
# ESXi's default, if the datastore is at least 75% full. README.md gives the reasons.
set -eu

dry_run=no
all=no

usage() {
    echo "usage: reclaim.sh [--dry-run] DATASTORE...|--all" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
        --dry-run) dry_run=yes ;;
        --all) all=yes ;;
        --) shift && break ;;
        -*) usage ;;
        *) break ;;
    esac
    shift
done
if [ "$all" = yes ]; then
    [ $# -eq 0 ] || usage
else
    [ $# -gt 0 ] || usage
fi

# filesystems: prints a line for each mounted one: size and free bytes, type, name.
filesystems() {
    esxcli --formatter=csv storage filesystem list | awk -F, '
        NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["Mounted"] == "true" && $at["VolumeName"] != "" {
            print $at["Size"], $at["Free"], $at["Type"], $at["VolumeName"]
        }'
}

# reclaim SIZE FREE NAME: reclaims one datastore.
reclaim() {
    mb=$(($2 / 1048576))
    if [ $((($1 - $2) * 100)) -ge $(($1 * 75)) ]; then
        blocks=200
    else
        blocks=$((mb / 100))
    fi
    if [ "$blocks" -eq 0 ]; then
        echo "$3: less than 100 MB are free, so there is nothing to reclaim"
        return
    fi
    echo "esxcli storage vmfs unmap --volume-label=$3 --reclaim-unit=$blocks"
    # esxcli must not read standard input: that is the list of the datastores.
    [ "$dry_run" = yes ] ||
        esxcli storage vmfs unmap --volume-label="$3" --reclaim-unit="$blocks" </dev/null
}

list=$(filesystems)
if [ "$all" = yes ]; then
    printf '%s\n' "$list" | while read -r size free type name; do
        case $type in
            VMFS-5) reclaim "$size" "$free" "$name" ;;
        esac
    done
    exit 0
fi
for wanted in "$@"; do
    found=$(printf '%s\n' "$list" | while read -r size free type name; do
        case $type in
            VMFS-*) [ "$name" != "$wanted" ] || echo "$size $free" ;;
        esac
    done)
    if [ -z "$found" ]; then
        echo "reclaim.sh: there is no mounted VMFS datastore named $wanted" >&2
        exit 1
    fi
    reclaim "${found% *}" "${found#* }" "$wanted"
done
