<#
.SYNOPSIS
Adds the claim rules for Holdfast, or removes them: copies of up to 240 MB in several segments, and
round robin that changes the path after every command.

.DESCRIPTION
NEVER RUN AGAINST A REAL HOST, nor in any PowerShell, by those who wrote it. Needs VMware PowerCLI
and a connection (Connect-VIServer). -WhatIf only shows what would be done. Devices that a host has
claimed already take the rule for copies after a reboot. Why, and how to undo it, is in README.md.

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
    # What INQUIRY shows of every volume.
    $vendor = 'HOLDFAST'
    $model = 'Holdfast'
}

process {
    foreach ($one in $VMHost) {
        $esxcli = Get-EsxCli -VMHost $one -V2
        $claim = $esxcli.storage.core.claimrule
        $satp = $esxcli.storage.nmp.satp.rule

        # Both are looked at before either is changed.
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
