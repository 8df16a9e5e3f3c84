variable "name" {
  description = "What everything is called that is made here."
  type        = string
  default     = "pilotlight"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,20}$", var.name))
    error_message = "Expected lower-case letters, digits and hyphens, 21 at most: buckets are called so too."
  }
}

variable "region" {
  description = "The region of AWS."
  type        = string
}

variable "network" {
  description = "Addresses of the network, a /16: nodes, pods and the database."
  type        = string
  default     = "10.42.0.0/16"

  validation {
    condition     = endswith(var.network, "/16") && can(cidrhost(var.network, 0))
    error_message = "Expected a /16."
  }
}

variable "kubernetes_version" {
  description = "One that docs/kubernetes.md names."
  type        = string
  default     = "1.34"
}

variable "api_networks" {
  description = "From where the cluster's API may be reached; empty: from the network alone."
  type        = list(string)
  default     = []
}

variable "client_networks" {
  description = "From where clients reach gateways."
  type        = list(string)
  default     = ["0.0.0.0/0"]
}

variable "plane" {
  description = "Nodes of the control plane and the bus: at least three, one a zone."
  type = object({
    instance_type = optional(string, "m7i.xlarge")
    count         = optional(number, 3)
  })
  default = {}

  validation {
    condition     = var.plane.count >= 3
    error_message = "Two servers of the bus on one host die together: expected three nodes or more."
  }
}

variable "pools" {
  description = "Pools of nodes with agents, by name. A spot pool may be taken away at short notice; its nodes' tokens say --spot."
  type = map(object({
    instance_types = list(string)
    gpu            = optional(bool, true)
    spot           = optional(bool, false)
    least          = optional(number, 0)
    most           = number
    disk_gib       = optional(number, 200)
  }))
  default = {
    l4      = { instance_types = ["g6.2xlarge"], least = 1, most = 4 }
    l4-spot = { instance_types = ["g6.2xlarge", "g6.4xlarge"], spot = true, most = 8 }
  }

  validation {
    condition     = alltrue([for pool in var.pools : pool.least <= pool.most])
    error_message = "A pool has at most as many nodes as it may have."
  }
}

variable "database" {
  description = "The ledger's PostgreSQL."
  type = object({
    instance_class = optional(string, "db.t4g.medium")
    storage_gib    = optional(number, 50)
    backup_days    = optional(number, 14)
  })
  default = {}
}

variable "keep" {
  description = "Whether the database and the bucket outlive `terraform destroy`."
  type        = bool
  default     = true
}
