#!/bin/sh
# Adds or removes the claim rules for Holdfast: copies of up to 240 MB in several segments, and
# round robin with a path change after every command.
#
# NOT TESTED ON A REAL HOST by its authors: only with a fake esxcli (test.sh).
#
#   claim-rules.sh [--dry-run] [--rule NUMBER] [--devices] [--remove]
#
# Run it in the ESXi shell, if possible before the first volume is connected: the rule for copies
# applies to claimed devices only after a reboot. --devices sets round robin for these at once.
# --dry-run only prints the commands that would change something. README.md gives the reasons, and
# how to undo it.
set -eu

# The strings in INQUIRY of every volume.
vendor=HOLDFAST
model=Holdfast
rule=915
dry_run=no
remove=no
devices=no

usage() {
    echo "usage: claim-rules.sh [--dry-run] [--rule NUMBER] [--devices] [--remove]" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
        --dry-run) dry_run=yes ;;
        --devices) devices=yes ;;
        --remove) remove=yes ;;
        --rule)
            [ $# -ge 2 ] || usage
            rule=$2
            shift
            ;;
        *) usage ;;
    esac
    shift
done
case $rule in '' | *[!0-9]*) usage ;; esac

# run COMMAND...: runs the command, or only prints it.
run() {
    echo "$*"
    [ "$dry_run" = yes ] || "$@"
}

# owner CLASS: prints `ours` or `another` for the rule with our number; nothing if there is none.
owner() {
    esxcli storage core claimrule list --claimrule-class="$1" | awk -v rule="$rule" \
        -v ours="vendor=$vendor model=$model" '
        $2 == rule { print index($0, ours) ? "ours" : "another"; exit }'
}

# satp_is_there: returns whether our rule for round robin exists.
satp_is_there() {
    esxcli storage nmp satp rule list --satp=VMW_SATP_ALUA | grep -q "$vendor"
}

# clear_rule CLASS: removes our rule of this class, if there is one.
clear_rule() {
    if [ "$(owner "$1")" = ours ]; then
        run esxcli storage core claimrule remove --rule "$rule" --claimrule-class="$1"
    fi
}

satp_rule() {
    run esxcli storage nmp satp rule "$1" --satp=VMW_SATP_ALUA --vendor="$vendor" \
        --model="$model" --claim-option=tpgs_on --psp=VMW_PSP_RR --psp-option=iops=1
}

# Both are checked before either is changed.
for class in VAAI Filter; do
    if [ "$(owner "$class")" = another ]; then
        echo "claim-rules.sh: rule $rule of class $class has another purpose:" \
            "name a free one with --rule" >&2
        exit 1
    fi
done
for class in VAAI Filter; do
    clear_rule "$class"
done

if [ "$remove" = yes ]; then
    if satp_is_there; then
        satp_rule remove
    fi
else
    # A new array needs a rule of each class (002, page 31).
    run esxcli storage core claimrule add --rule "$rule" --type vendor --vendor "$vendor" \
        --model "$model" --plugin VAAI_FILTER --claimrule-class=Filter
    # -a: use the array's limits, -s: several segments, -m: the maximum of a copy in MB.
    run esxcli storage core claimrule add --rule "$rule" --type vendor --vendor "$vendor" \
        --model "$model" --plugin VMW_VAAIP_T10 --claimrule-class=VAAI -a -s -m 240
    if ! satp_is_there; then
        satp_rule add
    fi
fi
for class in Filter VAAI; do
    run esxcli storage core claimrule load --claimrule-class="$class"
done
run esxcli storage core claimrule run --claimrule-class=Filter

if [ "$devices" = yes ] && [ "$remove" = no ]; then
    # Each device has a block of lines, which begins with its name.
    esxcli storage core device list |
        awk -v vendor="$vendor" '
            /^[^ ]/ { name = $1 }
            $1 == "Vendor:" && $2 == vendor { print name }' |
        while read -r name; do
            run esxcli storage nmp device set --device "$name" --psp VMW_PSP_RR
            run esxcli storage nmp psp roundrobin deviceconfig set --device "$name" \
                --type iops --iops 1
        done
fi
echo "For devices that are claimed already, the rule for copies takes effect after a reboot."
