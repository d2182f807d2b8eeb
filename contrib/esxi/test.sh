#!/bin/sh
# Runs the scripts with a fake esxcli, which answers like a host and records its commands. Ends with
# `N passed, N failed, N skipped`. `./test` runs this.
set -eu
cd "$(dirname "$0")"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
log=$scratch/log
export log
passed=0
failed=0
skipped=0

mkdir "$scratch/bin"
cat >"$scratch/bin/esxcli" <<'END'
#!/bin/sh
# Answers like a host; commands that change something are written to $log.
case "$*" in
    "--formatter=csv storage filesystem list")
        # 1,048,576 MB free; 74.9% full; 75% full; 50 MB free; VMFS 6; not mounted; no VMFS.
        gb=1073741824
        echo "Free,MountPoint,Mounted,Size,Type,UUID,VolumeName,"
        echo "$((1048576 * 1048576)),p,true,$((2048 * gb)),VMFS-5,u1,big,"
        echo "$((251 * gb / 10)),p,true,$((100 * gb)),VMFS-5,u2,with a blank,"
        echo "$((25 * gb)),p,true,$((100 * gb)),VMFS-5,u3,three-quarters,"
        echo "$((50 * gb / 1024)),p,true,$((gb / 16)),VMFS-5,u4,tiny,"
        echo "$((90 * gb)),p,true,$((100 * gb)),VMFS-6,u5,six,"
        echo "$((90 * gb)),p,false,$((100 * gb)),VMFS-5,u6,away,"
        echo "$((90 * gb)),p,true,$((100 * gb)),NFS,u7,nfs,"
        ;;
    "system settings advanced list -o /VMFS3/EnableBlockDelete")
        [ "${old:-no}" = no ] || exit 1
        printf '   Path: %s\n   Int Value: 0\n   Default Int Value: 0\n' "$6"
        ;;
    "system settings advanced list -o /DataMover/MaxHWTransferSize")
        printf '   Path: %s\n   Int Value: %s\n   Default Int Value: 4096\n' "$6" "${size:-4096}"
        ;;
    "system settings advanced list -o "*)
        printf '   Path: %s\n   Int Value: 1\n   Default Int Value: 1\n' "$6"
        ;;
    "storage core device vaai status get") echo "naa.6: unknown" ;;
    "storage core claimrule list --claimrule-class="*)
        echo "Rule Class   Rule  Class    Type    Plugin          Matches"
        echo "VAAI        65430  runtime  vendor  VMW_VAAIP_SYMM  vendor=EMC model=SYMMETRIX"
        echo "VAAI        65430  file     vendor  VMW_VAAIP_SYMM  vendor=EMC model=SYMMETRIX"
        [ "${present:-no}" = no ] ||
            echo "VAAI          915  file     vendor  VMW_VAAIP_T10  vendor=HOLDFAST model=Holdfast"
        ;;
    "storage nmp satp rule list --satp=VMW_SATP_ALUA")
        [ "${present:-no}" = no ] || echo "VMW_SATP_ALUA  HOLDFAST  Holdfast  tpgs_on  VMW_PSP_RR"
        ;;
    "storage core device list")
        printf 'naa.1\n   Display Name: x\n   Vendor: HOLDFAST\n   Model: Holdfast        \n'
        printf '\nnaa.2\n   Display Name: x\n   Vendor: ATA     \n   Model: Holdfast\n'
        ;;
    *) echo "$*" >>"$log" ;;
esac
END
chmod +x "$scratch/bin/esxcli"
PATH=$scratch/bin:$PATH

# run SHELL SCRIPT ARGUMENTS...: records its exit code, its output, and the commands to esxcli.
run() {
    : >"$log"
    code=0
    said=$("$@" 2>&1) || code=$?
    told=$(cat "$log")
}

# row NAME TEST...: counts a test.
row() {
    name=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
        echo "ok      $name"
    else
        failed=$((failed + 1))
        echo "FAILED  $name"
        printf '        exit code %s, output:\n%s\n        esxcli:\n%s\n' "$code" "$said" "$told"
    fi
}

# told_exactly LINES: checks that esxcli got exactly these commands, and that the script succeeded.
told_exactly() { [ "$code" -eq 0 ] && [ "$told" = "$1" ]; }
# ended CODE WORDS: checks the exit code and the output, and that esxcli got no command.
ended() {
    [ "$code" -eq "$1" ] && [ -z "$told" ] || return 1
    case $said in *"$2"*) ;; *) return 1 ;; esac
}
both() { ended 0 "$1" && ended 0 "$2"; }

# in_shell SHELL...: runs all tests, with the scripts run by this shell.
in_shell() {
    as=$*
    run "$@" reclaim.sh big "with a blank" three-quarters
    row "$as: reclaim uses 1% of the free MB, rounded down, or 200 from 75% on" told_exactly \
        "storage vmfs unmap --volume-label=big --reclaim-unit=10485
storage vmfs unmap --volume-label=with a blank --reclaim-unit=257
storage vmfs unmap --volume-label=three-quarters --reclaim-unit=200"
    run "$@" reclaim.sh --all
    row "$as: reclaim --all skips VMFS 6, NFS and unmounted datastores" told_exactly \
        "storage vmfs unmap --volume-label=big --reclaim-unit=10485
storage vmfs unmap --volume-label=with a blank --reclaim-unit=257
storage vmfs unmap --volume-label=three-quarters --reclaim-unit=200"
    run "$@" reclaim.sh six
    row "$as: reclaim accepts VMFS 6 by its name" told_exactly \
        "storage vmfs unmap --volume-label=six --reclaim-unit=921"
    run "$@" reclaim.sh tiny
    row "$as: reclaim of less than 100 MB does nothing" ended 0 "nothing to reclaim"
    run "$@" reclaim.sh --dry-run big
    row "$as: reclaim --dry-run does nothing" ended 0 "--reclaim-unit=10485"
    run "$@" reclaim.sh nobody
    row "$as: reclaim refuses an unknown name" ended 1 "no mounted VMFS datastore"
    run "$@" reclaim.sh away
    row "$as: reclaim refuses an unmounted datastore" ended 1 "no mounted VMFS datastore"
    run "$@" reclaim.sh
    row "$as: reclaim without names shows the usage" ended 2 "usage:"

    run "$@" check-vaai.sh
    row "$as: check finds options that differ" ended 1 "4096  recommended: 16384"
    export old=yes size=16384
    run "$@" check-vaai.sh
    row "$as: check skips options that an old host does not know" both \
        "unknown to this ESXi" "16384  as recommended"
    run "$@" set-vaai.sh --ats-heartbeat off
    row "$as: set sets the options that the host knows" told_exactly \
        "system settings advanced set --int-value 1 --option /DataMover/HardwareAcceleratedMove
system settings advanced set --int-value 1 --option /DataMover/HardwareAcceleratedInit
system settings advanced set --int-value 1 --option /VMFS3/HardwareAcceleratedLocking
system settings advanced set --int-value 0 --option /VMFS3/UseATSForHBOnVMFS5
system settings advanced set --int-value 16384 --option /DataMover/MaxHWTransferSize"
    unset old size
    run "$@" set-vaai.sh --undo
    row "$as: set --undo sets the defaults" told_exactly \
        "system settings advanced set --default --option /DataMover/HardwareAcceleratedMove
system settings advanced set --default --option /DataMover/HardwareAcceleratedInit
system settings advanced set --default --option /VMFS3/HardwareAcceleratedLocking
system settings advanced set --default --option /VMFS3/UseATSForHBOnVMFS5
system settings advanced set --default --option /VMFS3/EnableBlockDelete
system settings advanced set --default --option /DataMover/MaxHWTransferSize"
    run "$@" set-vaai.sh --dry-run --transfer-size 8192
    row "$as: set --dry-run does nothing" ended 0 "8192 --option /DataMover/MaxHWTransferSize"
    run "$@" set-vaai.sh --transfer-size 16385
    row "$as: set refuses a size that ESXi does not accept" ended 2 "steps of 1024"

    match="--vendor HOLDFAST --model Holdfast"
    satp="--satp=VMW_SATP_ALUA --vendor=HOLDFAST --model=Holdfast --claim-option=tpgs_on"
    satp="$satp --psp=VMW_PSP_RR --psp-option=iops=1"
    load="storage core claimrule load --claimrule-class=Filter
storage core claimrule load --claimrule-class=VAAI
storage core claimrule run --claimrule-class=Filter"
    filter="--plugin VAAI_FILTER --claimrule-class=Filter"
    vaai="--plugin VMW_VAAIP_T10 --claimrule-class=VAAI -a -s -m 240"
    run "$@" claim-rules.sh --devices
    row "$as: claim rules are added, and Holdfast's devices are set" told_exactly \
        "storage core claimrule add --rule 915 --type vendor $match $filter
storage core claimrule add --rule 915 --type vendor $match $vaai
storage nmp satp rule add $satp
$load
storage nmp device set --device naa.1 --psp VMW_PSP_RR
storage nmp psp roundrobin deviceconfig set --device naa.1 --type iops --iops 1"
    run "$@" claim-rules.sh --rule 65430
    row "$as: a rule with another purpose is not changed" ended 1 "has another purpose"
    export present=yes
    run "$@" claim-rules.sh
    row "$as: existing rules are replaced, not duplicated" told_exactly \
        "storage core claimrule remove --rule 915 --claimrule-class=VAAI
storage core claimrule remove --rule 915 --claimrule-class=Filter
storage core claimrule add --rule 915 --type vendor $match $filter
storage core claimrule add --rule 915 --type vendor $match $vaai
$load"
    run "$@" claim-rules.sh --remove
    row "$as: claim rules are removed" told_exactly \
        "storage core claimrule remove --rule 915 --claimrule-class=VAAI
storage core claimrule remove --rule 915 --claimrule-class=Filter
storage nmp satp rule remove $satp
$load"
    unset present
    run "$@" claim-rules.sh --remove --dry-run
    row "$as: claim rules --dry-run does nothing" ended 0 "claimrule load"
}

in_shell sh
# The shells that run scripts on ESXi.
if command -v busybox >/dev/null; then
    in_shell busybox sh
else
    skipped=$((skipped + 1))
    echo "skipped busybox: it is not installed"
fi
if command -v shellcheck >/dev/null; then
    run shellcheck --shell=sh check-vaai.sh set-vaai.sh claim-rules.sh reclaim.sh test.sh
    row "shellcheck finds nothing" told_exactly ""
else
    skipped=$((skipped + 1))
    echo "skipped shellcheck: it is not installed"
fi
echo
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
