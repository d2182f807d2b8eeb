<#
.SYNOPSIS
Adds or removes the claim rules for Holdfast: copies of up to 240 MB in several segments, and round
robin with a path change after every command.

.DESCRIPTION
NOT TESTED ON A REAL HOST, nor in any PowerShell, by its authors. Needs VMware PowerCLI and a
connection (Connect-VIServer). -WhatIf only shows what would be done. The rule for copies applies to
claimed devices only after a reboot. README.md gives the reasons, and how to undo it.

.EXAMPLE
Get-VMHost esx-1* | ./claim-rules.ps1 -WhatIf
#>
[CmdletBinding(SupportsShouldProcess)]
param(
    [Parameter(Mandatory, ValueFromPipeline)] [object[]] $VMHost,
    [int] $Rule = 915,
    [switch] $Remove
)

begin {
    # The strings in INQUIRY of every volume.
    $vendor = 'HOLDFAST'
    $model = 'Holdfast'
}

process {
    foreach ($one in $VMHost) {
        $esxcli = Get-EsxCli -VMHost $one -V2
        $claim = $esxcli.storage.core.claimrule
        $satp = $esxcli.storage.nmp.satp.rule

        # Both are checked before either is changed.
        $there = foreach ($class in 'VAAI', 'Filter') {
            $claim.list.Invoke(@{ claimruleclass = $class }) | Where-Object { $_.Rule -eq "$Rule" }
        }
        if ($there | Where-Object { $_.Matches -notlike "*vendor=$vendor model=$model*" }) {
            throw "${one}: rule $Rule is for something else: name a free one with -Rule"
        }
        $doing = if ($Remove) { 'remove the rules' } else { 'add the rules' }
        if (-not $PSCmdlet.ShouldProcess("$one", "$doing of number $Rule")) {
            continue
        }
        foreach ($class in $there.RuleClass | Select-Object -Unique) {
            [void]$claim.remove.Invoke(@{ rule = $Rule; claimruleclass = $class })
        }

        $robin = @{
            satp        = 'VMW_SATP_ALUA'
            vendor      = $vendor
            model       = $model
            claimoption = 'tpgs_on'
            psp         = 'VMW_PSP_RR'
            pspoption   = 'iops=1'
        }
        $known = $satp.list.Invoke(@{ satp = 'VMW_SATP_ALUA' }) |
            Where-Object { $_.Vendor -eq $vendor }
        if ($Remove) {
            if ($known) { [void]$satp.remove.Invoke($robin) }
        }
        else {
            $match = @{ rule = $Rule; type = 'vendor'; vendor = $vendor; model = $model }
            [void]$claim.add.Invoke($match + @{
                plugin         = 'VAAI_FILTER'
                claimruleclass = 'Filter'
            })
            [void]$claim.add.Invoke($match + @{
                plugin               = 'VMW_VAAIP_T10'
                claimruleclass       = 'VAAI'
                xcopyusearrayvalues  = $true
                xcopyusemultisegs    = $true
                xcopymaxtransfersize = 240
            })
            if (-not $known) { [void]$satp.add.Invoke($robin) }
        }
        foreach ($class in 'Filter', 'VAAI') {
            [void]$claim.load.Invoke(@{ claimruleclass = $class })
        }
        [void]$claim.run.Invoke(@{ claimruleclass = 'Filter' })
    }
}
