# Nodes: those of the control plane and the bus, and pools with agents, which nothing else goes to.
resource "aws_iam_role" "node" {
  for_each           = toset(["plane", "agents"])
  name_prefix        = "${var.name}-${each.key}-"
  assume_role_policy = data.aws_iam_policy_document.assumed["ec2"].json
}

locals {
  node_policies = {
    for pair in setproduct(
      ["plane", "agents"],
      ["AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly", "AmazonEKS_CNI_Policy"],
    ) : join("/", pair) => { role = pair[0], policy = pair[1] }
  }
  agent_label = "pilotlight.dev/agent"
}

resource "aws_iam_role_policy_attachment" "node" {
  for_each   = local.node_policies
  role       = aws_iam_role.node[each.value.role].name
  policy_arn = "arn:${local.partition}:iam::aws:policy/${each.value.policy}"
}

resource "aws_launch_template" "plane" {
  name_prefix            = "${var.name}-plane-"
  vpc_security_group_ids = [aws_security_group.plane.id]
  update_default_version = true

  metadata_options { # a pod is a hop away from its node, and gets no role of it
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  block_device_mappings {
    device_name = "/dev/xvda"

    ebs {
      volume_size = 100
      volume_type = "gp3"
      encrypted   = true
      kms_key_id  = aws_kms_key.rest.arn
    }
  }
}

resource "aws_eks_node_group" "plane" {
  cluster_name           = aws_eks_cluster.main.name
  node_group_name_prefix = "${var.name}-plane-"
  node_role_arn          = aws_iam_role.node["plane"].arn
  subnet_ids             = aws_subnet.nodes[*].id
  ami_type               = "AL2023_x86_64_STANDARD"
  instance_types         = [var.plane.instance_type]

  launch_template {
    id      = aws_launch_template.plane.id
    version = aws_launch_template.plane.latest_version
  }

  scaling_config {
    min_size     = var.plane.count
    desired_size = var.plane.count
    max_size     = var.plane.count + 1
  }

  update_config {
    max_unavailable = 1 # as the budgets of infra/kustomize have it
  }

  lifecycle {
    create_before_destroy = true
  }

  depends_on = [aws_eks_addon.network, aws_iam_role_policy_attachment.node, aws_vpc_security_group_ingress_rule.heard]
}

resource "aws_launch_template" "agents" {
  for_each               = var.pools
  name_prefix            = "${var.name}-${each.key}-"
  vpc_security_group_ids = [aws_security_group.agents.id]
  update_default_version = true

  metadata_options {
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  block_device_mappings {
    device_name = "/dev/xvda"

    ebs { # versions' files and weights are kept here
      volume_size = each.value.disk_gib
      volume_type = "gp3"
      encrypted   = true
      kms_key_id  = aws_kms_key.rest.arn
    }
  }
}

resource "aws_eks_node_group" "agents" {
  for_each               = var.pools
  cluster_name           = aws_eks_cluster.main.name
  node_group_name_prefix = "${var.name}-${each.key}-"
  node_role_arn          = aws_iam_role.node["agents"].arn
  subnet_ids             = aws_subnet.nodes[*].id
  ami_type               = each.value.gpu ? "AL2023_x86_64_NVIDIA" : "AL2023_x86_64_STANDARD"
  capacity_type          = each.value.spot ? "SPOT" : "ON_DEMAND"
  instance_types         = each.value.instance_types

  labels = merge(
    { (local.agent_label) = "true", "pilotlight.dev/pool" = each.key },
    each.value.gpu ? { "nvidia.com/gpu.present" = "true" } : {},
  )

  taint {
    key    = local.agent_label
    effect = "NO_SCHEDULE"
  }

  launch_template {
    id      = aws_launch_template.agents[each.key].id
    version = aws_launch_template.agents[each.key].latest_version
  }

  scaling_config {
    min_size     = each.value.least
    desired_size = each.value.least
    max_size     = each.value.most
  }

  update_config {
    max_unavailable = 1
  }

  lifecycle {
    create_before_destroy = true
    ignore_changes        = [scaling_config[0].desired_size] # who needs more nodes says so there
  }

  depends_on = [aws_eks_addon.network, aws_iam_role_policy_attachment.node, aws_vpc_security_group_ingress_rule.heard]
}
