# Roles that pods have by their service accounts, and no role beside: a node's own may pull images and join its cluster.
locals {
  issuer = replace(aws_eks_cluster.main.identity[0].oidc[0].issuer, "https://", "")
  accounts = {
    gateway = { namespace = "pilotlight", name = "pilotlight-gateway" }
    duties  = { namespace = "pilotlight", name = "pilotlight-duties" }
    volumes = { namespace = "kube-system", name = "ebs-csi-controller-sa" }
  }
}

data "aws_iam_policy_document" "account" {
  for_each = local.accounts

  statement {
    actions = ["sts:AssumeRoleWithWebIdentity"]

    principals {
      type        = "Federated"
      identifiers = [aws_iam_openid_connect_provider.cluster.arn]
    }

    condition {
      test     = "StringEquals"
      variable = "${local.issuer}:sub"
      values   = ["system:serviceaccount:${each.value.namespace}:${each.value.name}"]
    }

    condition {
      test     = "StringEquals"
      variable = "${local.issuer}:aud"
      values   = ["sts.amazonaws.com"]
    }
  }
}

resource "aws_iam_role" "account" {
  for_each           = local.accounts
  name_prefix        = "${var.name}-${each.key}-"
  assume_role_policy = data.aws_iam_policy_document.account[each.key].json
}

data "aws_iam_policy_document" "blob_access" {
  statement {
    actions   = ["s3:ListBucket"]
    resources = [aws_s3_bucket.blobs.arn]
  }

  statement {
    actions   = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"]
    resources = ["${aws_s3_bucket.blobs.arn}/*"]
  }

  statement {
    actions   = ["kms:Decrypt", "kms:GenerateDataKey"]
    resources = [aws_kms_key.rest.arn]
  }
}

data "aws_iam_policy_document" "secret_access" {
  statement {
    actions   = ["kms:Encrypt", "kms:Decrypt", "kms:DescribeKey"]
    resources = [aws_kms_key.secrets.arn]
  }
}

data "aws_iam_policy_document" "volume_access" {
  statement {
    actions   = ["kms:Decrypt", "kms:GenerateDataKeyWithoutPlaintext", "kms:CreateGrant"]
    resources = [aws_kms_key.rest.arn]
  }
}

resource "aws_iam_role_policy" "blobs" {
  for_each = toset(["gateway", "duties"])
  name     = "blobs"
  role     = aws_iam_role.account[each.key].name
  policy   = data.aws_iam_policy_document.blob_access.json
}

resource "aws_iam_role_policy" "secrets" {
  name   = "secrets"
  role   = aws_iam_role.account["gateway"].name
  policy = data.aws_iam_policy_document.secret_access.json
}

resource "aws_iam_role_policy" "volumes" {
  name   = "volumes"
  role   = aws_iam_role.account["volumes"].name
  policy = data.aws_iam_policy_document.volume_access.json
}

resource "aws_iam_role_policy_attachment" "volumes" {
  role       = aws_iam_role.account["volumes"].name
  policy_arn = "arn:${local.partition}:iam::aws:policy/service-role/AmazonEBSCSIDriverPolicy"
}
