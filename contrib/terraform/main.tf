# Volumes, hosts and their connections, by the provider `restapi`. README.md says how to run this,
# and what the provider can't do.

terraform {
  required_providers {
    restapi = {
      source  = "mastercard/restapi"
      version = "~> 1.20"
    }
  }
}

variable "array" {
  type        = string
  description = "The management address of the array, such as https://example.com:8443"
}

variable "token" {
  type        = string
  sensitive   = true
  description = "An API token of a storage admin: holdfast token create terraform --user NAME"
}

variable "volumes" {
  type        = map(number)
  default     = { "vmfs1" = 1024, "vmfs2" = 2048 }
  description = "Volumes, with their sizes in GiB"
}

variable "hosts" {
  type = map(list(string))
  default = {
    "esx1" = ["iqn.1998-01.com.vmware:esx1"]
    "esx2" = ["iqn.1998-01.com.vmware:esx2"]
  }
  description = "Hosts, with the iSCSI names of their initiators"
}

locals {
  rest = "/api/2.42"
  pairs = {
    for pair in setproduct(keys(var.volumes), keys(var.hosts)) :
    "${pair[0]}-${pair[1]}" => { volume = pair[0], host = pair[1] }
  }
}

provider "restapi" {
  uri                  = var.array
  headers              = { Authorization = "Bearer ${var.token}" }
  write_returns_object = false
}

# Destroying a volume here starts its eradication delay: `holdfast volume recover` undoes it.
resource "restapi_object" "volume" {
  for_each       = var.volumes
  object_id      = each.key
  path           = "/v1/volumes"
  data           = jsonencode({ name = each.key, size_bytes = each.value * 1024 * 1024 * 1024 })
  update_method  = "PATCH"
  destroy_method = "PATCH"
  destroy_path   = "${local.rest}/volumes?names={id}"
  destroy_data   = jsonencode({ destroyed = true })
}

resource "restapi_object" "host" {
  for_each      = var.hosts
  object_id     = each.key
  path          = "${local.rest}/hosts"
  data          = jsonencode({ iqns = each.value })
  create_path   = "${local.rest}/hosts?names={id}"
  read_path     = "${local.rest}/hosts?names={id}"
  update_path   = "${local.rest}/hosts?names={id}"
  update_method = "PATCH"
  destroy_path  = "${local.rest}/hosts?names={id}"
}

resource "restapi_object" "connection" {
  for_each     = local.pairs
  object_id    = each.key
  path         = "${local.rest}/connections"
  read_path    = "${local.rest}/connections"
  destroy_path = "${local.rest}/connections"
  query_string = "volume_names=${each.value.volume}&host_names=${each.value.host}"
  data         = jsonencode({})
  depends_on   = [restapi_object.volume, restapi_object.host]
}
