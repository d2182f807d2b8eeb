<#
.SYNOPSIS
Shows how hosts' VAAI options are set, beside what is recommended, and changes nothing.

.DESCRIPTION
NEVER RUN AGAINST A REAL HOST, nor in any PowerShell, by those who wrote it. Needs VMware PowerCLI
and a connection (Connect-VIServer). What is recommended, by whom and why, is in README.md.

.EXAMPLE
Get-VMHost esx-1* | ./check-vaai.ps1 | Format-Table
#>
[CmdletBinding()]
param(
    [Parameter(Mandatory, ValueFromPipeline)] [object[]] $VMHost,
    [int] $TransferSizeKB = 16384
)

process {
    $wanted = [ordered]@{
        'DataMover.HardwareAcceleratedMove'  = 1
        'DataMover.HardwareAcceleratedInit'  = 1
        'VMFS3.HardwareAcceleratedLocking'   = 1
        'VMFS3.UseATSForHBOnVMFS5'           = 1
        'VMFS3.EnableBlockDelete'            = 1
        'DataMover.MaxHWTransferSize'        = $TransferSizeKB
    }
    foreach ($one in $VMHost) {
        foreach ($name in $wanted.Keys) {
            # What this version of ESXi does not know is left out by PowerCLI.
            $setting = Get-AdvancedSetting -Entity $one -Name $name
            [pscustomobject]@{
                Host        = "$one"
                Option      = $name
                Value       = if ($setting) { $setting.Value } else { 'unknown here' }
                Recommended = $wanted[$name]
                AsWanted    = [bool]$setting -and $setting.Value -eq $wanted[$name]
            }
        }
    }
}
