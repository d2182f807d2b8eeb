<#
.SYNOPSIS
Sets hosts' VAAI options to the recommended values, or to ESXi's defaults.

.DESCRIPTION
NOT TESTED ON A REAL HOST, nor in any PowerShell, by its authors. Needs VMware PowerCLI and a
connection (Connect-VIServer). -WhatIf only shows what would be set; -Undo sets the defaults.
README.md gives the sources of the recommendations, and the reasons.

.EXAMPLE
Get-VMHost esx-1* | ./set-vaai.ps1 -WhatIf
#>
[CmdletBinding(SupportsShouldProcess)]
param(
    [Parameter(Mandatory, ValueFromPipeline)] [object[]] $VMHost,
    [ValidateScript({ $_ -ge 1024 -and $_ -le 16384 -and $_ % 1024 -eq 0 })]
    [int] $TransferSizeKB = 16384,
    [switch] $NoAtsHeartbeat,
    [switch] $Undo
)

process {
    $values = [ordered]@{
        'DataMover.HardwareAcceleratedMove'  = 1
        'DataMover.HardwareAcceleratedInit'  = 1
        'VMFS3.HardwareAcceleratedLocking'   = 1
        'VMFS3.UseATSForHBOnVMFS5'           = if ($NoAtsHeartbeat) { 0 } else { 1 }
        'VMFS3.EnableBlockDelete'            = 1
        'DataMover.MaxHWTransferSize'        = $TransferSizeKB
    }
    if ($Undo) {
        # ESXi's defaults.
        $values['VMFS3.UseATSForHBOnVMFS5'] = 1
        $values['VMFS3.EnableBlockDelete'] = 0
        $values['DataMover.MaxHWTransferSize'] = 4096
    }
    foreach ($one in $VMHost) {
        foreach ($name in $values.Keys) {
            $setting = Get-AdvancedSetting -Entity $one -Name $name
            if (-not $setting) {
                Write-Warning "${one}: $name is unknown to this ESXi"
            }
            elseif ($PSCmdlet.ShouldProcess("$one", "$name = $($values[$name])")) {
                Set-AdvancedSetting -AdvancedSetting $setting -Value $values[$name] `
                    -Confirm:$false
            }
        }
    }
}
