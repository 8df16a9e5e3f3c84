# One key for what lies at rest (disks, the bucket, the database, Kubernetes' secrets), and one for tenants' secrets alone.
resource "aws_kms_key" "rest" {
  description             = "${var.name}: what lies at rest"
  enable_key_rotation     = true
  deletion_window_in_days = 30
  policy                  = data.aws_iam_policy_document.rest_key.json
}

resource "aws_kms_alias" "rest" {
  name          = "alias/${var.name}-rest"
  target_key_id = aws_kms_key.rest.key_id
}

resource "aws_kms_key" "secrets" {
  description             = "${var.name}: seals the data keys of tenants' secrets (--secrets-key)"
  enable_key_rotation     = true
  deletion_window_in_days = 30
}

resource "aws_kms_alias" "secrets" {
  name          = "alias/${var.name}"
  target_key_id = aws_kms_key.secrets.key_id
}

data "aws_iam_policy_document" "rest_key" {
  statement {
    sid       = "Account"
    actions   = ["kms:*"]
    resources = ["*"]

    principals {
      type        = "AWS"
      identifiers = ["arn:${local.partition}:iam::${local.account_id}:root"]
    }
  }

  statement { # disks of nodes, which Auto Scaling starts
    sid       = "Disks"
    actions   = ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*", "kms:DescribeKey"]
    resources = ["*"]

    principals {
      type        = "AWS"
      identifiers = [local.scaling_role]
    }
  }

  statement {
    sid       = "DiskGrants"
    actions   = ["kms:CreateGrant"]
    resources = ["*"]

    principals {
      type        = "AWS"
      identifiers = [local.scaling_role]
    }

    condition {
      test     = "Bool"
      variable = "kms:GrantIsForAWSResource"
      values   = ["true"]
    }
  }
}

locals {
  scaling_role = "arn:${local.partition}:iam::${local.account_id}:role/aws-service-role/autoscaling.amazonaws.com/AWSServiceRoleForAutoScaling"
}
