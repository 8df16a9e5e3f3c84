# Pilotlight on AWS: what infra/kustomize and the Helm chart stand on. How it is used, and what was not tried: docs/terraform.md.
terraform {
  required_version = ">= 1.9"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 6.0"
    }
  }
}

provider "aws" {
  region = var.region
  default_tags {
    tags = { "pilotlight" = var.name }
  }
}

data "aws_caller_identity" "current" {}

data "aws_partition" "current" {}

data "aws_availability_zones" "available" {
  state = "available"
}

locals {
  zones      = slice(data.aws_availability_zones.available.names, 0, 3) # the bus has a server in each
  account_id = data.aws_caller_identity.current.account_id
  partition  = data.aws_partition.current.partition
}
