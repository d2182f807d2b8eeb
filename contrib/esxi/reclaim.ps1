<#
.SYNOPSIS
Gives back what was deleted in VMFS datastores, as many blocks at a time as ESXi takes.

.DESCRIPTION
NEVER RUN AGAINST A REAL HOST, nor in any PowerShell, by those who wrote it. Needs VMware PowerCLI
and a connection (Connect-VIServer). -WhatIf only shows what would be done. Blocks at a time: 1% of
the free space in MB, rounded down; 200, which is ESXi's own default, where the datastore is 75%
full or more. README.md tells why.

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
            Write-Warning "${one}: it is no VMFS datastore"
            continue
        }
        $free = $one.FreeSpaceMB
        $used = $one.CapacityMB - $free
        $blocks = if ($used * 100 -ge $one.CapacityMB * 75) { 200 }
                  else { [math]::Floor($free / 100) }
        if ($blocks -lt 1) {
            Write-Warning "${one}: less than 100 MB are free, there is nothing to reclaim"
            continue
        }
        $vmhost = $one | Get-VMHost | Where-Object { $_.ConnectionState -eq 'Connected' } |
            Select-Object -First 1
        if (-not $vmhost) {
            Write-Warning "${one}: no connected host sees it"
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
