<#
.SYNOPSIS
Compares hosts' VAAI options with the recommended values. Changes nothing.

.DESCRIPTION
NOT TESTED ON A REAL HOST, nor in any PowerShell, by its authors. Needs VMware PowerCLI and a
connection (Connect-VIServer). README.md gives the sources of the recommendations, and the reasons.

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
            # PowerCLI omits options that this version of ESXi does not know.
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
