# Files of versions and large bodies. Agents reach it by links that gateways sign, and have no credentials of AWS.
resource "aws_s3_bucket" "blobs" {
  bucket        = "${var.name}-${local.account_id}-${var.region}"
  force_destroy = !var.keep
}

resource "aws_s3_bucket_public_access_block" "blobs" {
  bucket                  = aws_s3_bucket.blobs.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_ownership_controls" "blobs" {
  bucket = aws_s3_bucket.blobs.id

  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "blobs" {
  bucket = aws_s3_bucket.blobs.id

  rule {
    bucket_key_enabled = true

    apply_server_side_encryption_by_default {
      sse_algorithm     = "aws:kms"
      kms_master_key_id = aws_kms_key.rest.arn
    }
  }
}

# The platform deletes what nobody wants any more; versions of the bucket's own would keep what tenants have erased.
resource "aws_s3_bucket_lifecycle_configuration" "blobs" {
  bucket = aws_s3_bucket.blobs.id

  rule {
    id     = "unfinished"
    status = "Enabled"

    filter {}

    abort_incomplete_multipart_upload {
      days_after_initiation = 2
    }
  }
}

resource "aws_s3_bucket_policy" "blobs" {
  bucket = aws_s3_bucket.blobs.id
  policy = data.aws_iam_policy_document.blobs.json
}

data "aws_iam_policy_document" "blobs" {
  statement {
    sid       = "TlsAlone"
    effect    = "Deny"
    actions   = ["s3:*"]
    resources = [aws_s3_bucket.blobs.arn, "${aws_s3_bucket.blobs.arn}/*"]

    principals {
      type        = "*"
      identifiers = ["*"]
    }

    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }
}
