output "values" {
  description = "Values of the Helm chart: terraform output -raw values > aws.yaml"
  value = yamlencode({
    region     = var.region
    blobUrl    = "s3://${aws_s3_bucket.blobs.bucket}?region=${var.region}"
    secretsKey = "aws-kms://${aws_kms_alias.secrets.name}?region=${var.region}"
    ledger     = { cidr = local.database_network }
    gateway    = { serviceAccountAnnotations = { "eks.amazonaws.com/role-arn" = aws_iam_role.account["gateway"].arn } }
    duties     = { serviceAccountAnnotations = { "eks.amazonaws.com/role-arn" = aws_iam_role.account["duties"].arn } }
    bus        = { storageClass = "pilotlight" }
    service = {
      type = "LoadBalancer"
      annotations = {
        "service.beta.kubernetes.io/aws-load-balancer-type"            = "external"
        "service.beta.kubernetes.io/aws-load-balancer-nlb-target-type" = "ip"
        "service.beta.kubernetes.io/aws-load-balancer-scheme"          = "internet-facing"
      }
    }
  })
}

output "ledger" {
  description = "Where the database is: HOST:PORT/NAME."
  value       = "${aws_db_instance.ledger.endpoint}/${aws_db_instance.ledger.db_name}"
}

output "ledger_password" {
  description = "The secret of Secrets Manager that has the database's user and password."
  value       = aws_db_instance.ledger.master_user_secret[0].secret_arn
}

output "storage_class" {
  description = "The class of the bus's volumes: terraform output -raw storage_class | kubectl apply -f -"
  value = yamlencode({
    apiVersion        = "storage.k8s.io/v1"
    kind              = "StorageClass"
    metadata          = { name = "pilotlight" }
    provisioner       = "ebs.csi.aws.com"
    parameters        = { type = "gp3", encrypted = "true", kmsKeyId = aws_kms_key.rest.arn }
    volumeBindingMode = "WaitForFirstConsumer"
    reclaimPolicy     = "Retain"
  })
}

output "cluster" {
  description = "aws eks update-kubeconfig --name …"
  value       = aws_eks_cluster.main.name
}
