<#
.SYNOPSIS
Reclaims deleted space of VMFS datastores, with the largest reclaim unit that ESXi accepts.

.DESCRIPTION
NOT TESTED ON A REAL HOST, nor in any PowerShell, by its authors. Needs VMware PowerCLI and a
connection (Connect-VIServer). -WhatIf only shows what would be done. The reclaim unit is 1% of the
free space in MB, rounded down, or 200, ESXi's default, if the datastore is at least 75% full.
README.md gives the reasons.

.EXAMPLE
Get-Datastore vm-* | ./reclaim.ps1 -WhatIf
#>
[CmdletBinding(SupportsShouldProcess)]
param(
    [Parameter(Mandatory, ValueFromPipeline)] [object[]] $Datastore
)

process {
    foreach ($one in $Datastore) {
        if ($one.Type -ne 'VMFS') {
            Write-Warning "${one}: not a VMFS datastore"
            continue
        }
        $free = $one.FreeSpaceMB
        $used = $one.CapacityMB - $free
        $blocks = if ($used * 100 -ge $one.CapacityMB * 75) { 200 }
                  else { [math]::Floor($free / 100) }
        if ($blocks -lt 1) {
            Write-Warning "${one}: less than 100 MB are free, so there is nothing to reclaim"
            continue
        }
        $vmhost = $one | Get-VMHost | Where-Object { $_.ConnectionState -eq 'Connected' } |
            Select-Object -First 1
        if (-not $vmhost) {
            Write-Warning "${one}: no connected host has access to it"
            continue
        }
        if ($PSCmdlet.ShouldProcess("$one", "unmap by $vmhost, $blocks blocks at a time")) {
            $esxcli = Get-EsxCli -VMHost $vmhost -V2
            [void]$esxcli.storage.vmfs.unmap.Invoke(@{
                volumelabel = $one.Name
                reclaimunit = $blocks
            })
        }
    }
}
